import type { CallerFormatName } from '#formats/format-name.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'

import type { Block, Said } from './random-answer.ts'
import { writeChat } from './write-chat.ts'
import { writeMessages } from './write-messages.ts'
import { writeResponses } from './write-responses.ts'
import type { WrittenAnswer } from './written-frame.ts'

const writers: Record<
  CallerFormatName,
  (blocks: readonly Block[], random: Random) => WrittenAnswer
> = { messages: writeMessages, responses: writeResponses, chat_completions: writeChat }

/** Written from what providers document, and not with the writers of the service. */
export function writeAnswer(
  format: CallerFormatName,
  blocks: readonly Block[],
  random: Random,
): WrittenAnswer {
  const { frames, ...plain } = writers[format](blocks, random)
  const ping = { bytes: ': ping\n\n', says: [] }
  const isNew = createNameFilter()
  return {
    ...plain,
    frames: frames
      .map(({ bytes, says }) => ({ bytes, says: says.filter(isNew) }))
      .flatMap((frame) => (random.isOneIn(30) ? [ping, frame] : [frame])),
    bodySays: plain.bodySays.filter(createNameFilter()),
  }
}

/** A name that was said is not said again. */
function createNameFilter() {
  const known = new Set<string>()
  return ({ channel }: Said): boolean => {
    if (!channel.startsWith('name ')) return true
    const isNew = !known.has(channel)
    known.add(channel)
    return isNew
  }
}

/** How many frames, from the first on, say nothing but what may leave. */
export function countClearedFrames(
  { frames }: WrittenAnswer,
  cleared: ReadonlyMap<string, number>,
) {
  const said = new Map<string, number>()
  const count = frames.findIndex(({ says }) =>
    says.some(({ channel, text }) => {
      said.set(channel, (said.get(channel) ?? 0) + text.length)
      return (said.get(channel) ?? 0) > (cleared.get(channel) ?? 0)
    }),
  )
  return count === -1 ? frames.length : count
}
