import type { AnswerEvent, Frame } from '#formats/answer.ts'
import type { CallerFormat } from '#formats/format.ts'

/** For tests: the plain answer that a caller of a format gets. */
export function plainAnswerOf(format: CallerFormat, events: readonly AnswerEvent[]) {
  const writer = format.createWriter({
    requestId: 'req_1',
    model: 'ours',
    createdAt: new Date(0),
    inputTokens: 1,
    request: { model: 'ours' },
  })
  const source = { event: null, data: '', json: {}, bytes: Buffer.alloc(0) }
  const frames = events.flatMap((event) =>
    writer.write({ events: [event], source } as unknown as Frame),
  )
  const receipt = { remainingCredits: null, creditsUsed: 0, costUsd: 0, usage: null }
  return format.fold([...frames, ...writer.close(receipt)])
}
