/** A location of nodes. */
export interface NodeSite {
  /** City code in node names. */
  readonly city: string;
  /** Two-letter country code. */
  readonly country: string;
  readonly region: string;
  /** Share of the fleet, relative to the sum of all weights. */
  readonly weight: number;
}

/** The locations of a plausible network, most of it in North America and Western Europe. */
export const SITES: readonly NodeSite[] = [
  { city: "iad", country: "US", region: "us-east", weight: 16 },
  { city: "atl", country: "US", region: "us-east", weight: 5 },
  { city: "dfw", country: "US", region: "us-central", weight: 7 },
  { city: "lax", country: "US", region: "us-west", weight: 8 },
  { city: "yyz", country: "CA", region: "ca-central", weight: 3 },
  { city: "fra", country: "DE", region: "eu-central", weight: 12 },
  { city: "waw", country: "PL", region: "eu-central", weight: 2 },
  { city: "lhr", country: "GB", region: "eu-west", weight: 9 },
  { city: "cdg", country: "FR", region: "eu-west", weight: 7 },
  { city: "ams", country: "NL", region: "eu-west", weight: 6 },
  { city: "mad", country: "ES", region: "eu-south", weight: 3 },
  { city: "arn", country: "SE", region: "eu-north", weight: 3 },
  { city: "nrt", country: "JP", region: "ap-northeast", weight: 5 },
  { city: "sin", country: "SG", region: "ap-southeast", weight: 5 },
  { city: "syd", country: "AU", region: "ap-southeast", weight: 2 },
  { city: "bom", country: "IN", region: "ap-south", weight: 4 },
  { city: "gru", country: "BR", region: "sa-east", weight: 4 },
];

/** The distinct countries of {@link SITES}. Columns hold indexes into this list. */
export const COUNTRIES: readonly string[] = [...new Set(SITES.map((site) => site.country))];

/** Index of each site's country in {@link COUNTRIES}. */
export const SITE_COUNTRIES: readonly number[] = SITES.map((site) => COUNTRIES.indexOf(site.country));
