import { z } from 'zod'

import { readJsonAnswer } from '#exports/destinations/json-answer.ts'

const Item = z.object({
  status: z.number(),
  error: z.object({ type: z.string(), reason: z.string().nullish() }).optional(),
})
const BulkAnswer = z.object({ items: z.array(z.object({ create: Item })) })

type BulkItem = {
  kind: 'delivered' | 'refused' | 'failed'
  /** Empty if it was delivered. May repeat anything that was sent. */
  error: string
  /** Whether no item can be delivered before the configuration or the destination is changed. */
  isConfiguration: boolean
}

/** What became of each item; undefined if the answer is not about as many items. */
export function readBulkAnswer(body: Buffer, count: number): BulkItem[] | undefined {
  const answer = BulkAnswer.safeParse(readJsonAnswer(body))
  if (!answer.success || answer.data.items.length !== count) return undefined
  return answer.data.items.map(({ create }) => readItem(create))
}

function readItem({ status, error }: z.infer<typeof Item>): BulkItem {
  const isConflict = status === 409
  if ((status >= 200 && status < 300) || isConflict) {
    return { kind: 'delivered', error: '', isConfiguration: false }
  }
  const text = `The destination refused it with ${status}: ${describe(error)}`
  const kind = status === 429 || status >= 500 ? 'failed' : 'refused'
  return { kind, error: text, isConfiguration: isAboutTarget(status, error?.reason) }
}

/**
 * All items go to the same index: a missing permission, index or pipeline stops every one of them. They would all
 * become dead letters if that were the fault of the item.
 */
const isAboutTarget = (status: number, reason: string | null | undefined) =>
  [401, 403, 404].includes(status) || /^pipeline with id \[.*\] does not exist$/.test(reason ?? '')

const describe = (error: z.infer<typeof Item>['error']) =>
  error ? joinError(error) : 'no reason given'

const joinError = ({ type, reason }: { type: string; reason?: string | null | undefined }) =>
  reason ? `${type}: ${reason}` : type

const WholeError = z.object({
  error: z.union([z.string(), z.object({ type: z.string(), reason: z.string().nullish() })]),
})

/** Why a whole call failed; empty if it is not said. */
export function readError(body: Buffer): string {
  const answer = WholeError.safeParse(readJsonAnswer(body))
  if (!answer.success) return ''
  const { error } = answer.data
  return typeof error === 'string' ? error : joinError(error)
}
