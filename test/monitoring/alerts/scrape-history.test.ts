import { expect, test } from "vitest";
import { ScrapeHistory } from "./scrape-history.ts";

test("each scrape is a value of each series: repeated, missing before the first, stale after the last", () => {
  const history = new ScrapeHistory(new Set(["a", "b", "c_timestamp_seconds"]), 'job="w"', 100);
  for (const page of ["a 1\nother 9\n", 'a 1\nb{x="y"} 5\n', "a 2\nc_timestamp_seconds 130\n", "a 2\n", "a 2\n"]) {
    history.record(page);
  }
  expect(history.inputSeries()).toEqual([
    { series: 'a{job="w"}', values: "1x1 2x2" },
    { series: 'up{job="w"}', values: "1x4" },
    { series: 'b{x="y",job="w"}', values: "_ 5 stale _x2" },
    { series: 'c_timestamp_seconds{job="w"}', values: "_x2 30 stale _" },
  ]);
});
