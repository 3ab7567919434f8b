import type { FrameTexts } from '#formats/texts/frame-texts.ts'
import { originOf } from '#formats/texts/text-collector.ts'
import { tailLength } from '#formats/texts/text-views.ts'

/** For tests: the whole text of each channel. Throws where frames contradict each other. */
export function collectTexts(frames: readonly FrameTexts[]): Map<string, string> {
  const collected = new Map<string, string>()
  const ended = new Set<string>()
  for (const { texts, ended: endedHere } of frames) {
    for (const { channel, text, kind } of texts) {
      const known = collected.get(channel) ?? ''
      const grown = kind === 'delta' ? known + text : text
      if (!grown.startsWith(known)) throw new Error(`${channel} changes.`)
      if (ended.has(channel) && grown !== known)
        throw new Error(`${channel} goes on after its end.`)
      collected.set(channel, grown)
    }
    for (const channel of endedHere) ended.add(channel)
  }
  for (const channel of collected.keys()) {
    if (!ended.has(channel)) throw new Error(`${channel} never ends.`)
  }
  return joinResumed(collected)
}

/** A text that went on after its end stands in further channels, each of which repeats the end of the one before. */
function joinResumed(collected: ReadonlyMap<string, string>): Map<string, string> {
  const joined = new Map<string, string>()
  for (const [name, text] of collected) {
    const channel = originOf(name)
    const known = joined.get(channel) ?? ''
    const tail = name === channel ? '' : known.slice(-tailLength)
    if (!text.startsWith(tail)) throw new Error(`${name} does not go on where it ended.`)
    joined.set(channel, known + text.slice(tail.length))
  }
  return joined
}
