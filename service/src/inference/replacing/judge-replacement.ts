import type { Piece } from '#formats/answer.ts'
import { messageUpstreamFormat } from '#formats/messages/message-format.ts'

import { ReplacementFailure } from './replacement-failure.ts'
import type { ReplacedCall } from './replacement.ts'

/** Throws unless the whole replacement may leave. It is judged before any of it does. */
export async function judgeReplacement(text: string, { judge }: ReplacedCall) {
  let left = 0
  try {
    for await (const { frames } of judge(asAnswer(text))) left += frames.length
  } catch (error) {
    throw new ReplacementFailure('blocked', 'The replacement may not leave.', { cause: error })
  }
  if (left === 0) throw new ReplacementFailure('blocked', 'The replacement was held back.')
}

/** Guards read answers of upstreams, so it is given to them as one. */
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
