import { readdirSync } from 'node:fs'

import { defineConfig } from 'oxlint'

import { consoleBoundaries } from './oxlint.console.ts'

/** Which folder of service/src may import which. This table is the architecture. */
export const mayImport: Record<string, readonly string[]> = {
  platform: [], // I/O, knows no feature
  text: ['platform'], // leaf: normalising, patterns and literals; pure, but for sharing the event loop
  redaction: ['text', 'platform'], // leaf: personal data and secrets in texts; pure, but for sharing the event loop
  tokens: ['platform'], // leaf: counting; reads its tables
  formats: ['text', 'platform'], // leaf: the wire formats of models, pure
  http: ['platform'], // shared by all routes, knows no feature
  moderation: ['text', 'http', 'platform'], // what models say about texts; decides nothing
  processes: ['http', 'platform'], // several processes on one port; knows nothing of what they serve
  audit: ['platform'], // what happened, and what changed
  access: ['audit', 'http', 'platform'], // revocations go through the log of changes
  'sign-in': ['access', 'audit', 'http', 'platform'], // how members get their sessions
  console: ['http', 'platform'], // the files of the console; knows nothing of what they show
  limits: ['http', 'platform'], // counts; writes no events
  credits: ['access', 'audit', 'http', 'platform'], // payments decide the tier; grants and refunds are events
  policies: ['access', 'audit', 'http', 'platform', 'redaction', 'text'],
  traffic: ['audit', 'http', 'platform'], // calls and refusals summed for charts; decides nothing
  exports: ['access', 'audit', 'http', 'platform'], // reading the log and sending it on; locks organizations
  // the configuration of the policy gateway: saved, decided by, rolled out, simulated
  'gateway-config': [
    'policies',
    'moderation',
    'access',
    'audit',
    'http',
    'platform',
    'redaction',
    'text',
  ],
  // what of both is in force in this process
  'policies-in-force': [
    'gateway-config',
    'policies',
    'moderation',
    'access',
    'audit',
    'http',
    'platform',
    'text',
  ],
  installation: ['gateway-config', 'exports', 'http', 'platform'], // which database this is, and whether the master key is its own
  // the only folder that joins them all
  inference: [
    'policies-in-force',
    'gateway-config',
    'policies',
    'moderation',
    'credits',
    'access',
    'limits',
    'audit',
    'formats',
    'tokens',
    'redaction',
    'text',
    'http',
    'platform',
  ],
  operator: [
    'installation',
    'gateway-config', // secrets of guardrails, for a rotation of the master key
    'credits',
    'policies',
    'exports',
    'text',
    'access',
    'limits',
    'audit',
    'platform',
  ], // the commands of `gatehouse operator`
}

/** Folders in formats/ that are no formats: `texts` finds the texts of an answer in all of them. */
const noFormats: readonly string[] = ['testing', 'texts']

/**
 * Inside a large folder: which of its rooms may import which. Every room may also import the files that stand
 * in the folder itself, and those may import every room; `import/no-cycle` keeps that honest.
 */
export const mayImportInside: Record<string, Record<string, readonly string[]>> = {
  access: {
    sessions: [], // of people who have signed in
    'member-links': [], // links with a secret, each meant for one member
    labels: [], // for reports of costs
    organizations: ['labels'],
    'two-persons': ['organizations'], // what one person does not change alone
    settings: ['organizations', 'labels', 'two-persons'], // what an organization has decided about itself
    managed: [], // which set manages an object, and who may change it
    'allowed-models': [],
    'limit-overrides': ['organizations'], // own limits of projects, keys and organizations
    projects: ['organizations', 'limit-overrides', 'allowed-models', 'labels', 'managed'],
    keys: ['organizations', 'projects', 'limit-overrides', 'allowed-models', 'managed'],
    // people, and their projects; a suspension ends sessions, and who leaves has no keys
    members: [
      'organizations',
      'projects',
      'keys',
      'limit-overrides',
      'sessions',
      'member-links',
      'managed',
    ],
    'member-sessions': ['members', 'sessions'], // where a member is signed in, and its end
    'free-tier': [],
  },
  audit: { log: [], partitions: ['log'] },
  credits: {
    holds: [], // hold, settle, release, sweep
    unbilled: ['holds'], // calls that are only recorded
    backlog: ['holds'], // settlements that wait on disk
    balance: ['holds'],
    budgets: [], // alerts
    payments: ['holds'],
    reports: [],
    reconcile: [],
    stripe: ['payments'], // never the reverse: payments know no vendor
  },
  exports: {
    destinations: [], // each kind of destination; they know no sinks
    log: [], // reading and proving
    sinks: ['destinations'],
    delivery: ['destinations', 'log', 'sinks'],
  },
  traffic: { sums: [], refusals: [] }, // calls by their events, and what leaves no event
  formats: readFormatRows(),
  inference: {
    upstreams: [],
    count: ['upstreams'],
    metering: [],
    configured: [], // whom and what a configuration of the policy gateway decides about
    admission: ['metering', 'configured'], // limits, quotas and budgets of a call
    enforcement: ['upstreams', 'metering', 'configured'], // the table of checks, with a folder for each
    charging: ['upstreams', 'metering', 'enforcement'], // who pays for a call that did not complete
    monitoring: ['enforcement'], // what monitoring policies in plain language find when a call is over
  },
  limits: { quotas: [], counters: ['quotas'], outage: ['counters', 'quotas'] },
  moderation: {
    guardrails: [], // webhooks that decide about texts: how they are asked, and what their answers mean
    adapters: [], // what each kind of scorer is asked, and what its replies mean; pure
    judge: [], // the model that decides about rules in plain language
    local: [],
    pieces: [], // long texts are cut for one question, many short ones joined
  },
  'sign-in': {
    pages: [], // the sign-in page, keys, and who has signed in
    links: ['pages'], // links that sign a member in, made by the operator
    refusals: [], // sign-ins that were refused, as events
    providers: [], // whom the operator trusts to name people, and what their claims give; pure but for the file
    oidc: ['providers'], // the protocol; knows no members
    members: ['providers', 'oidc'], // what a described account means for its member
    device: ['pages', 'members'], // sessions for programs without a browser
    'provider-pages': ['providers', 'oidc', 'members', 'pages'], // sign-in with a provider
  },
  policies: {
    approvals: [], // the consent of a second person
    versions: [],
    rollout: [],
    rules: [],
    guard: ['rules'],
    trials: ['rules', 'guard', 'versions'], // rules tried on texts before they are published
    replay: ['rules', 'versions', 'trials'], // drafts tried on what was recorded of calls
    decisions: [],
  },
  'gateway-config': {
    decide: [], // pure
    config: ['decide'],
    simulate: ['decide', 'config'],
    guardrails: ['config'], // webhooks that decide about texts: as they are saved, and as they are in force
    proposals: ['config', 'guardrails'], // changes of both that wait for a second person
    rollout: ['decide', 'config'], // what the arms decided, and rollbacks
  },
}

/** No wire format may import another, so a new one needs no row of its own. */
function readFormatRows(): Record<string, readonly string[]> {
  const url = new URL('service/src/formats/', import.meta.url)
  const folders = readdirSync(url, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const formats = folders.map(({ name }) => name).filter((name) => !noFormats.includes(name))
  return { texts: [], ...Object.fromEntries(formats.map((name) => [name, ['texts']])) }
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

/**
 * What a file of this folder may not import; inside a room of it, also the rooms that its row leaves out. One
 * list, because the last pattern that matches decides and a pattern of another list could not take it back.
 */
function forbidden(folder: string, room?: string) {
  const folders = [folder, ...(mayImport[folder] ?? [])]
  const rooms = room ? [room, ...(mayImportInside[folder]?.[room] ?? [])] : []
  const others = room
    ? [`#${folder}/*/**`, ...rooms.map((name) => `!#${folder}/${name}/**`), '#*/**/testing/**']
    : ['#*/**/testing/**']
  const place = room ? `${folder}/${room}` : folder
  return [
    {
      group: ['#*/**', ...folders.map((name) => `!#${name}/**`), ...others],
      message: `${place}/ may not import this; see the tables in oxlint.config.ts.`,
    },
    entryFiles,
    climbing,
    powers,
  ]
}

const boundaryOf = (folder: string, room?: string) => ({
  files: [`service/src/${folder}/${room ? `${room}/` : ''}**`],
  rules: { 'no-restricted-imports': ['error', { patterns: forbidden(folder, room) }] },
})

/** Rooms come after the folders they are in: the later entry decides. */
const boundaries = [
  ...Object.keys(mayImport).map((folder) => boundaryOf(folder)),
  ...Object.entries(mayImportInside).flatMap(([folder, rooms]) =>
    Object.keys(rooms).map((room) => boundaryOf(folder, room)),
  ),
]

/**
 * What makes the weights of the local scorer imports that scorer and nothing else of the service. The service cannot
 * import it: that would be climbing.
 */
const training = {
  files: ['service/training/**'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            group: [
              '#*/**',
              '!#moderation/**',
              '#moderation/*/**',
              '!#moderation/local/**',
              '#*/**/testing/**',
            ],
            message: 'service/training/ may import moderation/ and moderation/local/ only.',
          },
          entryFiles,
          climbing,
          powers,
        ],
      },
    ],
  },
}

const tests = {
  files: ['**/*.test.ts', 'service/src/**/testing/**', 'acceptance/**'],
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
    'service/src/**/testing/**',
    'service/training/**',
  ],
  rules: { 'node/no-process-env': 'off', 'no-console': 'off' },
}

const entries = {
  files: ['service/src/*.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns: [climbing, testing, powers] }] },
}

const configurations = { files: ['*.config.ts'], rules: { 'import/no-default-export': 'off' } }

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
    'import/no-cycle': ['error', { ignoreTypes: false }],
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
    // A literal spread into a literal hides excess and overwritten members from the compiler.
    'unicorn/no-useless-spread': 'error',
    'no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
    'vitest/no-conditional-expect': 'off',
  },
  overrides: [
    ...boundaries,
    ...consoleBoundaries(climbing),
    training,
    entries,
    commands,
    tests,
    configurations,
  ] as never,
  ignorePatterns: ['**/database-types.ts'],
})
