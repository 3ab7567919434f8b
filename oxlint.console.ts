/** Which folder of console/src may import which, as above. Files at its top put the console together. */
const consoleMayImport: Record<string, readonly string[]> = {
  api: [], // calls by the contract's types, and what went wrong
  session: ['api'], // who has signed in, and what this browser remembers
  parts: ['api'], // what pages are made of; knows no page
  pages: ['parts', 'session', 'api'],
  shell: ['pages', 'parts', 'session', 'api'], // what is around every page
}

const onlyTypes = {
  group: ['@gatehouse/**', 'zod', 'node:*'],
  allowTypeImports: true,
  message: 'The console takes types of the contract only: import type.',
}

/** The console is for browsers: of the contract it has the types, and nothing else of ours. */
export const consoleBoundaries = (climbing: object) =>
  Object.entries(consoleMayImport).map(([folder, others]) => ({
    files: [`console/src/${folder}/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['#*/**', ...[folder, ...others].map((name) => `!#${name}/**`)],
              message: `console/src/${folder}/ may not import this; see consoleMayImport in oxlint.config.ts.`,
            },
            onlyTypes,
            climbing,
          ],
        },
      ],
    },
  }))
