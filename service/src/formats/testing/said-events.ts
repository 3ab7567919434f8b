import { type AnswerEvent, noUsage, type StopReason, type Usage } from '#formats/answer.ts'

/** What a model says: texts, reasoning, refusals and calls of tools, each in pieces. */
type Said = { type: string; pieces: string[] }

/** The events of an answer that says this, one block after the other. */
export function toEvents(
  said: readonly Said[],
  { reason = 'end', usage = noUsage }: { reason?: StopReason; usage?: Usage } = {},
): AnswerEvent[] {
  const blocks = said.flatMap(({ type, pieces }, index): AnswerEvent[] => [
    {
      type: 'block_started',
      index,
      block:
        type === 'tool_call'
          ? { type, id: `call_${index}`, name: 'look' }
          : { type: type as 'text' | 'refusal' | 'reasoning' },
    },
    ...pieces.map((text): AnswerEvent => ({ type: 'block_delta', index, text })),
    { type: 'block_ended', index },
  ])
  return [
    { type: 'started', id: 'upstream', model: 'theirs', usage },
    ...blocks,
    { type: 'finished', reason, stopSequence: null, usage },
  ]
}
