import type { X509Certificate } from "node:crypto";
import { isIP, SocketAddress } from "node:net";

/** Kinds of names that tell who a client is, as Node spells them; Prometheus looks at these and no others. */
const NAME_KINDS: ReadonlySet<string> = new Set(["DNS", "email", "IP Address", "URI"]);

/** One name of the list: its kind, and the name as it is, or as a JSON text where it would break the list. */
const NAME_ENTRY = /(?:^|, )([\w ]+):("(?:[^"\\]|\\.)*"|[^,"]*)/y;

/** The subject alternative names of a certificate by which a client may be let in; IP addresses in their shortest form. */
export function alternativeNames({ subjectAltName = "" }: Pick<X509Certificate, "subjectAltName">): readonly string[] {
  const names: string[] = [];
  NAME_ENTRY.lastIndex = 0;
  while (NAME_ENTRY.lastIndex < subjectAltName.length) {
    const entry = NAME_ENTRY.exec(subjectAltName);
    // A list that can't be read to its end may mean anything: it names nobody.
    if (entry === null) return [];
    const [, kind = "", written = ""] = entry;
    if (NAME_KINDS.has(kind)) names.push(canonicalName(unquote(written)));
  }
  return names;
}

/** A name as it is compared: one address may be written in many ways. */
export function canonicalName(name: string): string {
  const version = isIP(name);
  if (version === 0) return name;
  return new SocketAddress({ address: name, family: version === 6 ? "ipv6" : "ipv4" }).address;
}

const unquote = (written: string): string => (written.startsWith('"') ? String(JSON.parse(written)) : written);
