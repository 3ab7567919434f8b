import type { Piece } from '#formats/answer.ts'
import { messageUpstreamFormat } from '#formats/messages/message-format.ts'

/** Checks a text as if a model had answered with it. Throws unless all of it may leave. */
export async function judgeText(
  text: string,
  guard: (pieces: AsyncIterable<Piece>) => AsyncIterable<Piece>,
) {
  let left = 0
  for await (const { frames } of guard(asAnswer(text))) left += frames.length
  if (left === 0) throw new Error('The text was held back.')
}

/** Guards read answers of upstreams, so the text is presented to them as one. */
async function* asAnswer(text: string): AsyncGenerator<Piece> {
  const json = {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
  }
  const data = JSON.stringify(json)
  const source = { event: '', data, bytes: Buffer.from(data), json }
  const frame = messageUpstreamFormat.readPlain(source)
  yield { format: messageUpstreamFormat.name, frames: [frame], isPlain: true }
}
