import { readFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";
import { expect, test } from "vitest";

const here = (path: string) => new URL(`../${path}`, import.meta.url);

test("the types are those of the server's document", { timeout: 60_000 }, async () => {
  const made = await openapiTS(here("openapi.json"), {
    alphabetize: true,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
  });
  const kept = await readFile(here("src/api/schema.d.ts"), "utf8");
  const body = kept.slice(kept.indexOf("export interface paths"));
  expect(body, "run `npm run types`").toBe(astToString(made));
});

test("the lock names no place to download from", async () => {
  const lock = await readFile(here("package-lock.json"), "utf8");
  expect(lock).not.toContain('"resolved"');
  const hosts = lock.match(/"(?:https?|git\+\w+):\/\/[^"]+"/g) ?? [];
  expect(hosts.filter((host) => /registry|npmjs|mirror/.test(host))).toEqual([]);
});
