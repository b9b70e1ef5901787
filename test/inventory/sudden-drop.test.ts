import { expect, test } from "vitest";
import { SuddenDropCheck } from "../../src/inventory/sudden-drop.ts";

/** Returns a check whose last believed walk showed this many records. */
function checkAfter(seen: number): SuddenDropCheck {
  const check = new SuddenDropCheck();
  expect(check.missingRecords(seen, null)).toBe(0);
  return check;
}

test("a walk that shows less than half of the records of the last one misses the others", () => {
  expect(checkAfter(1_000).missingRecords(499, null)).toBe(501);
  expect(checkAfter(1_000).missingRecords(500, null)).toBe(0);
});

test("it is believed if another source states about as few records, and not if it states more", () => {
  expect(checkAfter(1_000).missingRecords(300, 600)).toBe(0);
  expect(checkAfter(1_000).missingRecords(300, 601)).toBe(700);
  expect(checkAfter(1_000).missingRecords(0, 0)).toBe(0);
});

test("it is believed after ten doubted walks in a row", () => {
  const check = checkAfter(1_000);
  for (let walk = 0; walk < 10; walk++) expect(check.missingRecords(10, 1_000)).toBe(990);
  expect(check.missingRecords(10, 1_000)).toBe(0);
  expect(check.missingRecords(10, 1_000)).toBe(0);
});

test("a walk in between that shows the records again ends the doubt", () => {
  const check = checkAfter(1_000);
  for (let walk = 0; walk < 30; walk++)
    expect(check.missingRecords(walk % 10 === 9 ? 1_000 : 0, null)).toBe(walk % 10 === 9 ? 0 : 1_000);
});

test("a walk of a list of fewer than 20 records is always believed", () => {
  expect(checkAfter(19).missingRecords(0, 19)).toBe(0);
  expect(checkAfter(20).missingRecords(0, 20)).toBe(20);
});
