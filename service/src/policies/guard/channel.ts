import { Arrivals } from './arrivals.ts'
import { ChannelReader, type AnswerReading } from './channel-reader.ts'
import { WaitingLength } from './waiting-length.ts'

/** A text of an answer on its way past the guard. */
export type Channel = {
  readonly name: string
  readonly arrivals: Arrivals
  readonly waiting: WaitingLength
  /** Null where no rule reads the text, and when the whole channel is decided. */
  reader: ChannelReader | null
  /** Whether it is another reading of texts that have channels of their own. */
  readonly isView: boolean
  /** Of a view: the order of the first character that has no other reading yet. */
  unreadOrder: number
  text: string
  isEnded: boolean
}

/** Text of a channel in another reading. Its places are those of the text itself. */
export type View = {
  readonly channel: string
  readonly text: string
  readonly from: number
  /** All of it belongs to that one place. */
  readonly isFlat: boolean
  /** What stands there and after it is not read yet, because what follows decides how; null where all is. */
  readonly readTo: number | null
}

/** `reading` is null where no rule reads the text. */
export function createChannel(
  name: string,
  reading: AnswerReading | null,
  isView: boolean,
): Channel {
  const arrivals = new Arrivals()
  return {
    name,
    arrivals,
    waiting: new WaitingLength(),
    reader: reading && new ChannelReader(name, arrivals, reading),
    isView,
    unreadOrder: Infinity,
    text: '',
    isEnded: false,
  }
}

/** More of another reading; `arrivals` are those of the text itself. */
export function addView(channel: Channel, view: View, arrivals: Arrivals) {
  const { text, from, isFlat, readTo } = view
  if (isFlat) channel.arrivals.addFlat(text, arrivals.orderAt(from))
  else channel.arrivals.addLike(text, arrivals, from)
  channel.unreadOrder = readTo === null ? Infinity : arrivals.orderAt(readTo)
  channel.reader?.add(text)
}

/** What the whole text of a channel adds to what has come of it; null where it says something else. */
export function restOf({ text, isEnded }: Channel, whole: string): string | null {
  if (whole.startsWith(text) && (whole.length === text.length || !isEnded)) {
    return whole.slice(text.length)
  }
  // Some upstreams trim the text that they repeat. White space around a text that was judged says nothing, so the
  // frame that has it may leave like one that repeats the text exactly.
  return whole.trim() === text.trim() ? '' : null
}
