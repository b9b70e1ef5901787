import type { CompletedCommand, CompletedOption, CompletionValues } from "../completion.ts";

/** Completion script for bash 3.2 and later. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  return `# bash completion of proxywarden, as \`proxywarden completion bash\` writes it.
_proxywarden() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  # Readline splits --config=file into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local command=proxywarden index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$command \${COMP_WORDS[index]}" in
${commands
  .slice(1)
  .map(({ path }) => `      ${singleQuoted(path)}) command=${singleQuoted(path)} ;;`)
  .join("\n")}
    esac
  done
  local words= files= options=
  case "$command $previous" in
${bashCases(commands)}
    *)
      case $command in
${commands
  .map(
    (command) =>
      `        ${singleQuoted(command.path)}) ${bashValues(positionalValues(command))} options=${singleQuoted(optionNames(command.options))} ;;`,
  )
  .join("\n")}
      esac
      if [[ $current == -* || -z $words$files ]]; then words=$options files=; fi
      ;;
  esac
  local reply
  COMPREPLY=()
  while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(compgen -W "$words" -- "$current")
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(compgen -f -- "$current")
  fi
}
complete -F _proxywarden proxywarden
`;
}

/** Cases of the options with a value; options with the same values share a line. */
function bashCases(commands: readonly CompletedCommand[]): string {
  const places = commands.flatMap(({ path, options }) =>
    options.flatMap(({ name, values }) =>
      values === null ? [] : [{ place: `${path} ${name}`, does: bashValues(values) }],
    ),
  );
  return Object.entries(Object.groupBy(places, ({ does }) => does))
    .map(([does, alike]) => `    ${alike!.map(({ place }) => singleQuoted(place)).join(" | ")}) ${does} ;;`)
    .join("\n");
}

/** Completion script for zsh, which can be stored in a folder in `fpath` or sourced. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef proxywarden
# zsh completion of proxywarden, as \`proxywarden completion zsh\` writes it.
${commands.map(zshFunction).join("\n")}
if [[ $funcstack[1] == _proxywarden ]]; then
  _proxywarden "$@"
else
  compdef _proxywarden proxywarden
fi
`;
}

function zshFunction(command: CompletedCommand): string {
  const { path, commands, options, values } = command;
  const specs = options.map(({ name, description, values }) => {
    const value = values === null ? "" : `:value:${zshValues(values)}`;
    return singleQuoted(`${name}${values === null ? "" : "="}[${escapeZsh(description)}]${value}`);
  });
  if (commands.length === 0) {
    const argument = values === null ? [] : [singleQuoted(`*:argument:${zshValues(values)}`)];
    return `${functionName(path)}() {\n  _arguments ${[...specs, ...argument].join(" \\\n    ")}\n}\n`;
  }
  return `${functionName(path)}() {
  local curcontext=$curcontext state line
  local -a commands
  _arguments -C ${[...specs, "'1:command:->command'", "'*::argument:->argument'"].join(" \\\n    ")}
  case $state in
    command)
      commands=(
${commands.map(({ name, description }) => `        ${singleQuoted(`${name}:${escapeZsh(description)}`)}`).join("\n")}
      )
      _describe -t commands command commands
      ;;
    argument)
      case $line[1] in
${commands.map(({ name }) => `        ${name}) ${functionName(`${path} ${name}`)} ;;`).join("\n")}
      esac
      ;;
  esac
}
`;
}

/** Completion script for fish 3.0 and later. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ path, commands: below, options, values }) => {
    const here = `complete -c proxywarden -n ${singleQuoted(`__proxywarden_at "${path}"`)}`;
    return [
      ...below.map(({ name, description }) => `${here} -a ${name} -d ${singleQuoted(description)}`),
      ...options.map(
        (option) =>
          `${here} -l ${option.name.slice(2)}${fishValues(option.values)} -d ${singleQuoted(option.description)}`,
      ),
      ...(values === null || values === "none"
        ? []
        : [`${here}${values === "file" ? " -F" : ` -a ${singleQuoted(values.join(" "))}`}`]),
    ];
  });
  return `# fish completion of proxywarden, as \`proxywarden completion fish\` writes it.
function __proxywarden_at
  set -l command proxywarden
  set -l words (commandline -opc)
  set -e words[1]
  for word in $words
    switch "$command $word"
      case ${commands
        .slice(1)
        .map(({ path }) => singleQuoted(path))
        .join(" ")}
        set command "$command $word"
    end
  end
  test "$command" = "$argv[1]"
end
complete -c proxywarden -f
${lines.join("\n")}
`;
}

/** Values after a command: its subcommands, or else its argument. */
const positionalValues = ({ commands, values }: CompletedCommand): CompletionValues | null =>
  commands.length > 0 ? commands.map(({ name }) => name) : values;

function bashValues(values: CompletionValues | null): string {
  if (values === null || values === "none") return "words=";
  return values === "file" ? "files=yes" : `words=${singleQuoted(values.join(" "))}`;
}

function zshValues(values: CompletionValues): string {
  if (values === "none") return " ";
  return values === "file" ? "_files" : `(${values.join(" ")})`;
}

function fishValues(values: CompletionValues | null): string {
  if (values === null) return "";
  if (values === "none") return " -x";
  return values === "file" ? " -r -F" : ` -x -a ${singleQuoted(values.join(" "))}`;
}

const optionNames = (options: readonly CompletedOption[]): string => options.map(({ name }) => name).join(" ");
const functionName = (path: string): string => `_${path.replaceAll(" ", "__")}`;
/** Quotes a text for all three shells. */
const singleQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** Escapes the special characters of `_arguments` and `_describe`. */
const escapeZsh = (text: string): string => text.replace(/[[\]:\\]/g, "\\$&");
