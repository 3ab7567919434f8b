import { fileError } from '#platform/operator-file/file-error.ts'
import type { KeyReference } from '#platform/operator-file/key-reference.ts'
import { fineGrid, remoteGrid, type WindowGrid } from '#text/windows/window-grid.ts'

import { categories, type Category } from './categories.ts'
import type { Guardrail } from './guardrails/guardrail.ts'
import {
  type GuardrailEntry,
  type JudgeEntry,
  parseModerationFile,
  type ScorerEntry,
} from './moderation-file.ts'

/** A model that is asked about texts. */
export type ModelPlace = {
  readonly baseUrl: string
  readonly model: string
  /** Null: it is asked without a key. */
  readonly secret: string | null
}

export type ScorerSettings = {
  readonly name: string
  readonly adapter: ScorerEntry['adapter']
  /** Null for `scripted`. */
  readonly place: ModelPlace | null
  readonly snapshot: string
  readonly deadlineMs: number
  /** How answers are cut for it. */
  readonly grid: WindowGrid
  /** Basis points, of every category. */
  readonly thresholds: Readonly<Record<Category, number>>
}

export type JudgeSettings = {
  readonly adapter: JudgeEntry['adapter']
  /** Null for `scripted`. */
  readonly place: ModelPlace | null
  readonly deadlineMs: number
  readonly hedgeMs: number
  /** What happens to a call whose enforcing rules the judge did not judge. */
  readonly onError: JudgeEntry['on_error']
  readonly calibration: JudgeEntry['calibration'] | null
}

/** What the operator has configured for moderation. */
export type ModerationSettings = {
  readonly scorers: readonly ScorerSettings[]
  readonly judge: JudgeSettings | null
  /** In the order in which they are asked. */
  readonly guardrails: readonly Guardrail[]
  readonly rewriterModel: string | null
  readonly acceptsLocalOnly: boolean
  readonly unscoredParts: 'pass' | 'refuse'
  readonly degraded: 'refuse' | 'allow'
}

export type ReadOptions = {
  allowsTestDoubles: boolean
  /** Throws where there is no usable key; its message has the place and never the key. */
  readSecret: (reference: KeyReference) => string
}

/** Without a file there is no scorer and no judge. */
export const noModeration: ModerationSettings = {
  scorers: [],
  judge: null,
  guardrails: [],
  rewriterModel: null,
  acceptsLocalOnly: false,
  unscoredParts: 'pass',
  degraded: 'refuse',
}

/** Reads the text of the file, and the keys that it refers to. One error lists everything that is wrong with it. */
export function readModeration(text: string, options: ReadOptions): ModerationSettings {
  const file = parseModerationFile(text, options)
  const problems: string[] = []
  const readKey = (key: KeyReference | undefined, member: string): string | null => {
    try {
      return key ? options.readSecret(key) : null
    } catch (error) {
      problems.push(`${member}.key: ${(error as Error).message}`)
      return null
    }
  }
  const toPlace = (entry: ScorerEntry | JudgeEntry, member: string): ModelPlace | null => {
    const { base_url: baseUrl, model, key } = entry
    if (baseUrl === undefined || model === undefined) return null
    return { baseUrl, model, secret: readKey(key, member) }
  }
  const scorers = file.scorers.map((entry, index) => ({
    name: entry.name,
    adapter: entry.adapter,
    place: toPlace(entry, `scorers[${index}]`),
    snapshot: entry.snapshot ?? entry.model ?? entry.adapter,
    deadlineMs: entry.deadline_ms,
    grid: entry.adapter === 'scripted' ? fineGrid : remoteGrid(entry.step_characters),
    thresholds: toThresholds(entry.thresholds),
  }))
  const judge = file.judge ? toJudge(file.judge, toPlace(file.judge, 'judge')) : null
  const guardrails = file.guardrails.map((entry, index) => {
    const secret = readKey(entry.key, `guardrails[${index}]`)
    if (secret !== null && !webhookSecret.test(secret))
      problems.push(`guardrails[${index}].key: must be whsec_ and the base64 of 24 bytes or more`)
    return toGuardrail(entry, secret)
  })
  if (problems.length > 0) throw fileError(problems)
  return {
    scorers,
    judge,
    guardrails,
    rewriterModel: file.rewriter?.model ?? null,
    acceptsLocalOnly: file.accept_local_only,
    unscoredParts: file.unscored_parts,
    degraded: file.degraded,
  }
}

const toJudge = (entry: JudgeEntry, place: ModelPlace | null): JudgeSettings => ({
  adapter: entry.adapter,
  place,
  deadlineMs: entry.deadline_ms,
  hedgeMs: entry.hedge_ms,
  onError: entry.on_error,
  calibration: entry.calibration ?? null,
})

/** As those of webhook sinks. */
const webhookSecret = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/

const toGuardrail = (entry: GuardrailEntry, secret: string | null): Guardrail => ({
  name: entry.name,
  id: null,
  mode: entry.mode,
  onError: entry.on_error,
  deadlineMs: entry.deadline_ms,
  url: entry.url,
  secret,
})

/** Where to start; what fits depends on the model and on the texts. Missing one text is worst in the category that is lowest. */
const defaultThresholds = {
  ...(Object.fromEntries(categories.map((each) => [each, 0.5])) as Record<Category, number>),
  'self-harm': 0.4,
  'sexual/minors': 0.2,
} satisfies Record<Category, number>

const toThresholds = (given: ScorerEntry['thresholds']) =>
  Object.fromEntries(
    categories.map((each) => [each, Math.round((given[each] ?? defaultThresholds[each]) * 10_000)]),
  ) as Record<Category, number>
