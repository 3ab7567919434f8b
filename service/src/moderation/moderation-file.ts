import { z } from 'zod'

import { explainFileIssue } from '#http/validate.ts'
import { fileError, memberName } from '#platform/operator-file/file-error.ts'
import { KeyReference } from '#platform/operator-file/key-reference.ts'
import { scanJson } from '#platform/operator-file/scan-json.ts'
import { stepLeast, stepMost } from '#text/windows/window-grid.ts'

import { adapterNames, adapters } from './adapters/adapters.ts'
import { alwaysBlocked, categories, type Category } from './categories.ts'

// MODERATION_FILE as the operator writes it (docs/moderation.md): its members, and what is wrong with them.

const Name = z.string().regex(/^[\w.-]{1,64}$/, { error: 'must be 1 to 64 letters, digits or ._-' })
const ModelName = z.string().min(1).max(200)
const BaseUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https address' })

/** Where a model is that is asked about texts. `scripted` is nowhere. */
const place = {
  base_url: BaseUrl.optional(),
  model: ModelName.optional(),
  key: KeyReference.optional(),
}

/** A threshold of 1 would hardly ever be reached, and these categories cannot be switched off. */
const alwaysBlockedMax = 0.95
const thresholdOf = (category: Category) =>
  z
    .number()
    .min(0.01)
    .max((alwaysBlocked as readonly Category[]).includes(category) ? alwaysBlockedMax : 1)
    .optional()

const ScorerEntry = z.strictObject({
  name: Name,
  adapter: z.enum(adapterNames),
  ...place,
  /** The version of the model with which the thresholds were measured; the model's name if absent. */
  snapshot: z.string().min(1).max(200).optional(),
  /** The deadline of each call. A streamed answer waits for its scores, so this also delays its first word. */
  deadline_ms: z.int().min(50).max(10_000).default(2000),
  /** How many new characters of an answer it is asked about at a time. Fewer make streams flow, and are more questions. */
  step_characters: z.int().min(stepLeast).max(stepMost).optional(),
  thresholds: z
    .strictObject(
      Object.fromEntries(categories.map((each) => [each, thresholdOf(each)])) as Record<
        Category,
        ReturnType<typeof thresholdOf>
      >,
    )
    .prefault({}),
})
export type ScorerEntry = z.infer<typeof ScorerEntry>

const JudgeEntry = z.strictObject({
  adapter: z.enum(['generic', 'granite', 'safeguard', 'scripted']),
  ...place,
  /** The deadline of all calls about one text together. */
  deadline_ms: z.int().min(50).max(10_000).default(800),
  /** How long to wait before a second call is made. The first answer counts. */
  hedge_ms: z.int().min(10).max(10_000).default(400),
  on_error: z.enum(['refuse', 'allow']).default('refuse'),
  /**
   * How the judge's own scores are mapped to basis points: pairs of a raw score and basis points, with linear interpolation
   * between them.
   */
  calibration: z
    .strictObject({
      version: z.string().min(1).max(100),
      points: z
        .array(z.tuple([z.number().min(0).max(1), z.int().min(0).max(10_000)]))
        .min(2)
        .max(100),
    })
    .optional(),
})
export type JudgeEntry = z.infer<typeof JudgeEntry>

const GuardrailEntry = z.strictObject({
  name: Name,
  url: BaseUrl.max(2048),
  /** Of the secret that questions are signed with. */
  key: KeyReference.optional(),
  mode: z.enum(['monitoring', 'enforcing']).default('monitoring'),
  on_error: z.enum(['refuse', 'allow']).default('refuse'),
  /** For each question. A streamed answer waits for it, so that this is also a delay of its first word. */
  deadline_ms: z.int().min(50).max(10_000).default(2000),
})
export type GuardrailEntry = z.infer<typeof GuardrailEntry>

const ModerationFile = z.strictObject({
  scorers: z.array(ScorerEntry).max(10).default([]),
  judge: JudgeEntry.optional(),
  /** Webhooks that are asked about the calls of all organizations. */
  guardrails: z.array(GuardrailEntry).max(5).default([]),
  /** A model of the catalogue that words refusals. */
  rewriter: z.strictObject({ model: ModelName }).optional(),
  /** Serve calls even though no scorer covers the always-blocked categories. */
  accept_local_only: z.boolean().default(false),
  unscored_parts: z.enum(['pass', 'refuse']).default('pass'),
  degraded: z.enum(['refuse', 'allow']).default('refuse'),
})
export type ModerationFile = z.infer<typeof ModerationFile>

type Options = { allowsTestDoubles: boolean }

/** Checks everything but the keys. One error lists all that is wrong, each with its line and member. */
export function parseModerationFile(text: string, options: Options): ModerationFile {
  const { fault, expected, repeated, lineOf } = scanJson(text)
  if (fault) {
    const { line, column } = fault
    throw fileError([`line ${line}, column ${column}: it is not JSON; expected ${expected}`])
  }
  const toProblem = ({ path, rule }: Complaint) =>
    `line ${lineOf(path)}: ${memberName(path)}: ${rule}`
  if (repeated.length > 0) {
    throw fileError(repeated.map((path) => toProblem({ path, rule: 'is given twice' })))
  }
  const json: unknown = JSON.parse(text)
  const result = ModerationFile.safeParse(json)
  const complaints = result.success
    ? findComplaints(result.data, options)
    : result.error.issues.map((issue) => explainFileIssue(issue, json))
  if (complaints.length > 0) throw fileError(complaints.map(toProblem))
  if (!result.success) throw fileError(['the file: cannot be used'])
  return result.data
}

type Complaint = { path: readonly PropertyKey[]; rule: string }

/** What no single member shows. */
function findComplaints(file: ModerationFile, options: Options): Complaint[] {
  const { scorers, judge, guardrails } = file
  const names = scorers.map(({ name }) => name)
  const ofScorers = scorers.flatMap((entry, index) => {
    const path = ['scorers', index]
    const twice = names.indexOf(entry.name) < index
    return [
      ...(twice ? [{ path: [...path, 'name'], rule: 'is the name of another scorer too' }] : []),
      ...findPlaceComplaints(entry, path, options),
      ...findUselessThresholds(entry, path),
    ]
  })
  const ofJudge = judge ? findJudgeComplaints(judge, options) : []
  return [...ofScorers, ...ofJudge, ...findGuardrailComplaints(guardrails)]
}

type Placed = Pick<ScorerEntry, 'base_url' | 'model' | 'key'> & { adapter: string }

function findPlaceComplaints(entry: Placed, path: readonly PropertyKey[], options: Options) {
  const complain = (member: string, rule: string): Complaint => ({ path: [...path, member], rule })
  const members = ['base_url', 'model', 'key'] as const
  if (entry.adapter !== 'scripted') {
    return members
      .filter((member) => member !== 'key' && entry[member] === undefined)
      .map((member) => complain(member, 'is required'))
  }
  const useless = members.filter((member) => entry[member] !== undefined)
  const isAllowed = options.allowsTestDoubles
  return [
    ...(isAllowed ? [] : [complain('adapter', "'scripted' needs ALLOW_TEST_DOUBLES=true")]),
    ...useless.map((member) => complain(member, "has no meaning for 'scripted'")),
  ]
}

function findUselessThresholds(
  { adapter, thresholds }: ScorerEntry,
  path: readonly PropertyKey[],
): Complaint[] {
  const { covers } = adapters[adapter]
  return categories
    .filter((category) => thresholds[category] !== undefined && !covers.has(category))
    .map((category) => ({
      path: [...path, 'thresholds', category],
      rule: `is no category that '${adapter}' scores`,
    }))
}

function findGuardrailComplaints(guardrails: readonly GuardrailEntry[]): Complaint[] {
  const names = guardrails.map(({ name }) => name)
  return guardrails.flatMap(({ name, url }, index) => {
    const path = ['guardrails', index]
    const { username, password } = new URL(url)
    return [
      ...(names.indexOf(name) < index
        ? [{ path: [...path, 'name'], rule: 'is the name of another guardrail too' }]
        : []),
      ...(username + password === ''
        ? []
        : [{ path: [...path, 'url'], rule: 'must not have a user name or a password' }]),
    ]
  })
}

function findJudgeComplaints(judge: JudgeEntry, options: Options): Complaint[] {
  const points = judge.calibration?.points ?? []
  const isRising = points.every(([raw, score], index) => {
    const [rawBefore = -1, scoreBefore = -1] = points[index - 1] ?? []
    return raw > rawBefore && score >= scoreBefore
  })
  return [
    ...findPlaceComplaints(judge, ['judge'], options),
    ...(judge.hedge_ms < judge.deadline_ms
      ? []
      : [{ path: ['judge', 'hedge_ms'], rule: 'must be less than deadline_ms' }]),
    ...(isRising ? [] : [{ path: ['judge', 'calibration', 'points'], rule: 'must rise' }]),
  ]
}
