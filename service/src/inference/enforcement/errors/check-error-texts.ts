import type { Piece, PieceSource, TakePiece } from '#formats/answer.ts'
import type { UpstreamComplaint } from '#formats/format.ts'
import { nothingSaid, ProviderError } from '#formats/provider-failure.ts'
import { createFindings, type Findings } from '#inference/enforcement/findings.ts'
import { type OpenPieces, openPieces } from '#inference/enforcement/guard/open-pieces.ts'
import type { CallRedaction } from '#inference/enforcement/redaction/call-redaction.ts'
import { judgeText } from '#inference/enforcement/replacement/judge-text.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import { entityHold } from '#redaction/entity.ts'

import { boundWords, cutText, onlyNames, wordsOf } from './provider-words.ts'

type Checking = {
  /** The findings of the call. */
  findings: Findings
  /** Guards a text that is no part of the answer. What it finds goes only to the given findings. */
  guard(pieces: AsyncIterable<Piece>, findings: Findings): AsyncIterable<Piece>
  /** Null if nothing is redacted. */
  redaction: Pick<CallRedaction, 'redactText'> | null
  asker: Asker
}

/**
 * The same pieces, but an error of the provider reaches the caller only in words that may leave. Those words are checked and
 * redacted like an answer. If they may not leave, the error says in our own words that the provider failed. Either way the call
 * ends with the provider's error: a match in its words is not a match of the call.
 */
export function checkErrorTexts(
  pieces: AsyncIterable<Piece>,
  checking: Checking,
): AsyncIterable<Piece> {
  const { findings, guard } = checking
  const { configured } = findings
  const mayLeave = async (said: UpstreamComplaint) => {
    const apart = { ...createFindings(), configured: configured && configured.apart() }
    try {
      await judgeText(wordsOf(said), (words) => guard(words, apart))
      return true
    } catch {
      return false
    } finally {
      if (apart.isDegraded) findings.isDegraded = true
    }
  }
  const retell = async (error: unknown): Promise<unknown> =>
    error instanceof ProviderError
      ? error.inOtherWords(await findSayable(error.said, { ...checking, mayLeave }))
      : error
  return new RetoldErrors(pieces, retell)
}

type Saying = Pick<Checking, 'redaction' | 'asker'> & {
  mayLeave(said: UpstreamComplaint): Promise<boolean>
}

/** Everything that the provider said, or only the names in it, or nothing. */
async function findSayable(all: UpstreamComplaint, saying: Saying): Promise<UpstreamComplaint> {
  const said = boundWords(all)
  const isCut = said.message.length < all.message.length
  for (const sayable of [said, onlyNames(said)]) {
    if (wordsOf(sayable) === '') continue
    if (await saying.mayLeave(sayable)) return redact(sayable, isCut, saying)
  }
  return nothingSaid
}

async function redact(
  said: UpstreamComplaint,
  isCut: boolean,
  { redaction, asker }: Saying,
): Promise<UpstreamComplaint> {
  if (!redaction) return said
  const redactText = async (text: string) => runInTurns(redaction.redactText(text), asker)
  const redactWord = async (word: string | null) => word && redactText(word)
  const { type, code, param } = said
  try {
    const message = await redactText(said.message)
    return {
      // A message that was cut may end with the start of something that would be redacted if it were whole.
      message: isCut ? cutText(message, message.length - entityHold) : message,
      type: await redactWord(type),
      code: await redactWord(code),
      ...(param !== undefined && { param: await redactText(param) }),
    }
  } catch {
    return nothingSaid // the caller has hung up
  }
}

/** The pieces of an answer, with a retold error at the end. A generator would cost time for every piece. */
class RetoldErrors implements AsyncIterableIterator<Piece>, PieceSource {
  readonly #pieces: OpenPieces
  readonly #retell: (error: unknown) => Promise<unknown>

  constructor(pieces: AsyncIterable<Piece>, retell: (error: unknown) => Promise<unknown>) {
    this.#pieces = openPieces(pieces)
    this.#retell = retell
  }

  readWhile(take: TakePiece): Promise<boolean> {
    return this.#pieces.readWhile(take).catch(async (error: unknown) => {
      throw await this.#retell(error)
    })
  }

  async next(): Promise<IteratorResult<Piece>> {
    let next: Piece | undefined
    await this.readWhile((piece) => {
      next = piece
      return false
    })
    return next ? { done: false, value: next } : { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<Piece>> {
    await this.#pieces.close()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator]() {
    return this
  }
}
