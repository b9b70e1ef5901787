type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;

/** A section with its keys in camelCase; `Durations` end in `Ms`. */
export type CamelKeys<Section, Durations extends keyof Section = never> = {
  [Key in keyof Section as Key extends string
    ? `${CamelCase<Key>}${Key extends Durations ? "Ms" : ""}`
    : never]: Section[Key];
};

/** Renames the keys of a section to camelCase, in the same order; those of `durations` get the suffix `Ms`. */
export function camelKeys<Section extends object, Durations extends keyof Section = never>(
  section: Section,
  ...durations: readonly Durations[]
): CamelKeys<Section, Durations> {
  const entries = Object.entries(section).map(([key, value]) => {
    const name = key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return [durations.some((duration) => duration === key) ? `${name}Ms` : name, value];
  });
  return Object.fromEntries(entries) as CamelKeys<Section, Durations>;
}
