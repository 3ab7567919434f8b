/** A command as it is sent, with one character for each byte. */
export function encodeCommand(args: readonly (string | Buffer)[]): string {
  let text = `*${args.length}\r\n`
  for (const arg of args) {
    const bytes = toCharacters(arg)
    text += `$${bytes.length}\r\n${bytes}\r\n`
  }
  return text
}

function toCharacters(arg: string | Buffer): string {
  if (typeof arg !== 'string') return arg.toString('latin1')
  return Buffer.byteLength(arg) === arg.length ? arg : Buffer.from(arg).toString('latin1')
}

const [lineFeed, plus, minus, colon, dollar] = [0x0a, 0x2b, 0x2d, 0x3a, 0x24]
/** Far more than an answer that is neither a number nor a string can begin with. */
const lineMaxBytes = 64 * 1024
/** Far more than our functions answer with. */
const stringMaxBytes = 16 * 1024 * 1024

/** Called for every answer, in order: with an error of the server, or with a number, bytes, a text or null. */
type OnAnswer = (error: Error | null, answer: unknown) => void

/**
 * Reads answers as they arrive: numbers, strings and errors. A list would need a stack; it throws, as do bytes that are
 * not of the protocol.
 */
export function createAnswerReader(onAnswer: OnAnswer) {
  let rest: Buffer | null = null

  return function read(chunk: Buffer) {
    const bytes: Buffer = rest ? Buffer.concat([rest, chunk]) : chunk
    rest = null
    let at = 0
    while (at < bytes.length) {
      const next = readAnswer(bytes, at, onAnswer)
      if (next === at) break
      at = next
    }
    if (at < bytes.length) rest = bytes.subarray(at)
  }
}

/** Reads the answer that begins at `start` and returns where it ends; `start` if it is not complete. */
function readAnswer(bytes: Buffer, start: number, onAnswer: OnAnswer): number {
  const end = bytes.indexOf(lineFeed, start)
  if (end === -1) {
    if (bytes.length - start > lineMaxBytes) throw notUnderstood()
    return start
  }
  const line = bytes.toString('latin1', start + 1, end - 1)
  switch (bytes[start]) {
    case dollar: {
      const length = readInteger(line)
      if (length < -1 || length > stringMaxBytes) throw notUnderstood()
      const next = end + 1 + length + 2
      if (length < 0) onAnswer(null, null)
      else if (next > bytes.length) return start
      else onAnswer(null, bytes.subarray(end + 1, next - 2))
      return length < 0 ? end + 1 : next
    }
    case colon:
      onAnswer(null, readInteger(line))
      return end + 1
    case plus:
      onAnswer(null, line)
      return end + 1
    case minus:
      onAnswer(new Error(line), null)
      return end + 1
    default:
      throw notUnderstood()
  }
}

function readInteger(line: string): number {
  if (!/^-?\d{1,16}$/.test(line)) throw notUnderstood()
  return Number(line)
}

const notUnderstood = () => new Error('Redis sent an answer that is neither a number nor a string')
