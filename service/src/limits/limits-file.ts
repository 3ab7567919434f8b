import {
  type LimitName,
  limitNumbers,
  organizationLimitNumbers,
  Tier,
} from '@gatehouse/contract/limits'
import { z } from 'zod'

import { explainFileIssue } from '#http/validate.ts'
import { fileError, memberName } from '#platform/operator-file/file-error.ts'
import { findJsonFault } from '#platform/operator-file/scan-json.ts'

import { type Metric, metricNames } from './limit-metrics.ts'
import { type Amounts, type Limits, type Scope, scopes } from './limits.ts'
import { limitsByTier } from './tiers.ts'

const Narrow = z.strictObject(limitNumbers).partial()
const questions = z.int().min(1).max(1_000_000_000)
/** How many questions an organization may cause (limit-questions.ts). */
const questionNumbers = {
  scorer_questions_per_minute: questions,
  judge_questions_per_minute: questions,
  rewriter_questions_per_minute: questions,
  guardrail_questions_per_minute: questions,
}
const TierEntry = z
  .strictObject({
    organization: z.strictObject({ ...organizationLimitNumbers, ...questionNumbers }).partial(),
    project: Narrow,
    key: Narrow,
  })
  .partial()

/** Whatever a file leaves out keeps the number of the built-in table. */
const LimitsFile = z.partialRecord(Tier, TierEntry)
type LimitsFile = z.infer<typeof LimitsFile>

/** The limits of every tier, and the file that some of the numbers come from. */
export type LimitTable = { byTier: Readonly<Record<Tier, Limits>>; file: LimitsFile }

export const defaultTable: LimitTable = { byTier: limitsByTier, file: {} }

/** Reads the operator's table. One error lists everything that is wrong with it, a line for each member. */
export function readLimitsFile(text: string): LimitTable {
  const json = parseJson(text)
  const result = LimitsFile.safeParse(json)
  if (!result.success) throw fileError(result.error.issues.map((issue) => describe(issue, json)))
  const file = result.data
  const byTier = Object.fromEntries(
    Tier.options.map((tier) => [tier, mergeTier(limitsByTier[tier], file[tier])]),
  ) as Record<Tier, Limits>
  const problems = Tier.options.flatMap((tier) => findUnreachable(tier, byTier[tier], file))
  if (problems.length > 0) throw fileError(problems)
  return { byTier, file }
}

const mergeTier = (limits: Limits, entry: LimitsFile[Tier] = {}): Limits =>
  Object.fromEntries(
    scopes.map((scope) => [scope, mergeScope(limits[scope], entry[scope])]),
  ) as Record<Scope, Amounts>

const mergeScope = (
  limits: Amounts,
  given: Readonly<Partial<Record<Metric, number | undefined>>> = {},
) =>
  Object.fromEntries(
    metricNames.map((metric): [Metric, number] => [metric, given[metric] ?? limits[metric]]),
  ) as Amounts

/**
 * A given number above the organization's would never be reached: it is a mistake, or the organization's was forgotten.
 * Numbers that are not given may be above it, so that a file can lower the organization's alone.
 */
function findUnreachable(tier: Tier, { organization }: Limits, file: LimitsFile): string[] {
  return (['project', 'key'] as const).flatMap((scope) =>
    Object.entries(file[tier]?.[scope] ?? {}).flatMap(([name, number]) => {
      const limit = organization[name as LimitName]
      const place = `${tier}.${scope}.${name}`
      const above = `is ${number}, more than the ${limit} of ${tier}.organization.${name}`
      return number !== undefined && number > limit ? [`${place}: ${above}`] : []
    }),
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const { line, column, expected } = findJsonFault(text)
    throw fileError([
      `the file: is not JSON (line ${line}, column ${column}; expected ${expected})`,
    ])
  }
}

function describe(issue: z.core.$ZodIssue, json: unknown): string {
  const { path, rule } = explainFileIssue(issue, json)
  return `${memberName(path)}: ${rule}`
}
