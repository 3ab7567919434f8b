import { readFile } from 'node:fs/promises'

import { parse } from 'yaml'

import {
  type CallerId,
  callers,
  clientPackages,
  type FeatureId,
  featureIds,
  features,
  featuresOfPrevious,
  type FormatId,
  formats,
  modes,
  noteOf,
  type NoteId,
  notes,
  type Place,
} from './compatibility.ts'

const introduction = `# Compatibility

Printed from \`tools/compatibility.ts\` by \`./dev generate\`. Do not edit.

The clients are unmodified; only their base URL and key point to Gatehouse. A tick means that a test of
\`acceptance/sdk-matrix.test.ts\` uses the feature with the client, through Gatehouse, against an upstream of the
format in the head of the column. A number refers to a note: the client or one of the two formats lacks the
feature, and the same test checks what happens instead. Each format has two columns: a plain answer, then a
streamed one.

A plain call that its client gives up, at the client's own timeout too, is not stopped and is charged, and the clients
repeat such calls: set their timeout above the time that answers take, or stream.

No state is kept between calls. A request that relies on stored conversations (a message thread,
\`previous_response_id\`, stored items) is refused with 400 and the reason. The tool loops of the clients send the
whole conversation themselves; \`@ai-sdk/openai\` does so with \`providerOptions: { openai: { store: false } }\`.
\`@anthropic-ai/sdk\` continues without a thread in its tool runner, and elsewhere when
\`unsupportedRequestBehavior\` is \`continue_unthreaded\`.
`

/** The releases of packages by their names in the catalog, such as `7.53.0` or `npm:openai@6.49.0`. */
type ClientReleases = Readonly<Record<string, string>>

async function readReleases(): Promise<ClientReleases> {
  const text = await readFile(new URL('../pnpm-workspace.yaml', import.meta.url), 'utf8')
  return (parse(text) as { catalog: ClientReleases }).catalog
}

const releaseOf = (releases: ClientReleases, name: string): string =>
  releases[name]?.split('@').at(-1) ?? 'unknown'

function printReleases(releases: ClientReleases): string {
  const rows = Object.entries(clientPackages).map(
    ([name, previous]) =>
      `| \`${name}\` | ${releaseOf(releases, name)} | ${releaseOf(releases, previous)} |`,
  )
  const titles = featuresOfPrevious.map((feature) => features[feature].title)
  return `## Releases

Every cell of the tables is tested with the newest major of each client. With the previous one, the same tests run for:
${titles.join('; ')}.

| Client | Newest major | Previous major |
| --- | --- | --- |
${rows.join('\n')}
`
}

/** The page that shows which client can do what. */
export async function toCompatibilityPage(): Promise<string> {
  const numbers = numberNotes()
  const tables = callerIds.map((caller) => printCaller(caller, numbers))
  const list = [...numbers].map(([note, number]) => `${number}. ${notes[note]}`)
  return `${[introduction, printReleases(await readReleases()), ...tables, `## Notes\n\n${list.join('\n')}`].join('\n')}\n`
}

const callerIds = Object.keys(callers) as CallerId[]
const formatIds = Object.keys(formats) as FormatId[]

const placesOf = (caller: CallerId): Place[] =>
  formatIds.flatMap((format) => modes.map((mode) => ({ caller, format, mode })))

/** Notes are numbered in the order of their first use, from the first table to the last. */
function numberNotes(): Map<NoteId, number> {
  const used = callerIds.flatMap((caller) =>
    featureIds.flatMap((feature) => placesOf(caller).map((place) => noteOf(feature, place))),
  )
  const distinct = [...new Set(used)].filter((note) => note !== null)
  return new Map(distinct.map((note, index) => [note, index + 1]))
}

function printCaller(caller: CallerId, numbers: Map<NoteId, number>): string {
  const { title, surface } = callers[caller]
  const places = placesOf(caller)
  const head = places.map(({ format, mode }) => `${formats[format]}, ${mode}`)
  const rows = featureIds.map((feature) => printRow(feature, places, numbers))
  const lines = [['Feature', ...head], ['---', ...places.map(() => '---')], ...rows].map(
    (cells) => `| ${cells.join(' | ')} |`,
  )
  return `## ${title}, ${surface}\n\n${lines.join('\n')}\n`
}

function printRow(feature: FeatureId, places: Place[], numbers: Map<NoteId, number>): string[] {
  const cells = places.map((place) => {
    const note = noteOf(feature, place)
    return note === null ? '✓' : String(numbers.get(note))
  })
  return [features[feature].title, ...cells]
}
