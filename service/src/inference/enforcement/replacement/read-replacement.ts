import type { AnswerEvent, Piece, StopReason } from '#formats/answer.ts'

import { ReplacementFailure } from './replacement.ts'

/** In no language are 400 tokens longer than this, but a server may ignore the limit that it was given. */
const charactersMax = 8000

/** The text of a rewriter's complete answer; throws if there is none that can stand by itself. */
export async function readReplacement(pieces: AsyncIterable<Piece>): Promise<string> {
  const texts = new Set<number>()
  let text = ''
  let reason: StopReason | undefined

  function read(event: AnswerEvent) {
    if (event.type === 'block_started' && event.block.type === 'text') texts.add(event.index)
    if (event.type === 'block_delta' && texts.has(event.index)) text += event.text
    if (event.type === 'finished') reason = event.reason
    if (text.length > charactersMax) throw unusable('has written too much')
  }

  for await (const { frames } of pieces) {
    for (const { events } of frames) for (const event of events) read(event)
  }
  // A text that was cut off must not be shown as if it were complete.
  if (reason !== 'end' && reason !== 'stop_sequence') throw unusable(`ended by ${reason}`)
  if (text.trim() === '') throw unusable('has written nothing')
  return text.trim()
}

const unusable = (what: string) => new ReplacementFailure('unusable', `The rewriter ${what}.`)
