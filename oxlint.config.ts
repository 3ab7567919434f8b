import { defineConfig } from 'oxlint'

/** Which folder of service/src may import which. This table is the architecture. */
export const mayImport: Record<string, readonly string[]> = {
  text: [], // leaf: pure functions over strings
  tokens: [], // leaf: pure counting
  platform: [], // I/O, knows no feature
  http: ['platform'], // shared by all routes, knows no feature
  audit: ['text', 'platform'], // anyone may announce; redacts before it writes
  access: ['audit', 'http', 'platform'], // revocations go through the log
  limits: ['http', 'platform'], // counts; writes no events
  credits: ['access', 'audit', 'http', 'platform'], // payments decide the tier; grants and refunds are events
  moderation: ['text', 'tokens', 'platform'], // scores; decides nothing, writes nothing
  policies: ['moderation', 'access', 'audit', 'text', 'http', 'platform'],
  exports: ['access', 'audit', 'http', 'platform'], // sinks and audit reads, from the log
  // puts policies and configuration in force; quotas use the counters
  'policy-gateway': 'policies moderation access limits audit text http platform'.split(' '),
  // the only folder that joins them all
  inference:
    'policy-gateway policies moderation credits access limits audit tokens text http platform'.split(
      ' ',
    ),
}

/** Files at the top of service/src assemble the process. They may import everything; nobody imports them. */
const entryFiles = { group: ['#*.ts'], message: 'Entry files are imported by nobody.' }
const climbing = {
  group: ['../**', '!../oxlint.config.ts'],
  message: 'Write #folder/file.ts instead of climbing.',
}
/** No part of the service runs commands or code that it is given (CVE-2026-40217, CVE-2026-42271). */
const powers = {
  group: ['node:vm', 'vm', 'node:child_process', 'child_process', 'node:repl', 'repl'],
  message: 'The service runs no commands and no code it is given.',
}
const testing = { group: ['#testing/**'], message: 'Only tests may import testing/.' }

const boundaries = Object.entries(mayImport).map(([folder, allowed]) => ({
  files: [`service/src/${folder}/**`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            group: ['#*/**', ...[folder, ...allowed].map((name) => `!#${name}/**`)],
            message: `${folder}/ may not import this; see mayImport in oxlint.config.ts.`,
          },
          entryFiles,
          climbing,
          powers,
        ],
      },
    ],
  },
}))

const tests = {
  files: ['**/*.test.ts', 'service/src/testing/**', 'acceptance/**'],
  rules: {
    'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
    'max-lines-per-function': 'off',
    'no-restricted-imports': ['error', { patterns: [climbing] }],
    'typescript/no-non-null-assertion': 'off',
  },
}

/** What runs on a developer's machine and not in the service may read the environment and speak. */
const commands = {
  files: [
    'tools/**',
    'acceptance/**',
    'bench/**',
    'cli/**',
    '**/*.test.ts',
    'service/src/testing/**',
  ],
  rules: { 'node/no-process-env': 'off', 'no-console': 'off' },
}

const entries = {
  files: ['service/src/*.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns: [climbing, testing, powers] }] },
}

const configurations = {
  files: ['*.config.ts'],
  rules: { 'import/no-default-export': 'off' },
}

export default defineConfig({
  plugins: ['typescript', 'import', 'node', 'vitest', 'promise', 'unicorn'],
  categories: { correctness: 'error' },
  options: { typeAware: true },
  rules: {
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    'typescript/switch-exhaustiveness-check': [
      'error',
      { considerDefaultExhaustiveForUnions: true },
    ],
    'typescript/no-explicit-any': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/consistent-type-imports': 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'node/no-process-env': 'error',
    'no-console': 'error',
    'no-eval': 'error',
    'no-new-func': 'error',
    'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
    'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
    'max-params': ['error', { max: 4 }],
    'vitest/valid-expect': 'off',
    'vitest/expect-expect': ['error', { assertFunctionNames: ['expect*', 'fc.assert'] }],
    // Our objects are closures, and Kysely's builders are meant to be taken apart.
    'typescript/unbound-method': 'off',
    // Groups short members of one kind on one line.
    'unicorn/no-useless-spread': 'off',
    'no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
    'vitest/no-conditional-expect': 'off',
  },
  overrides: [...boundaries, entries, commands, tests, configurations] as never,
  ignorePatterns: ['**/database-types.ts'],
})
