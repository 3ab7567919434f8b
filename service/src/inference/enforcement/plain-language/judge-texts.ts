import type { EarlierAnswer, RequestTexts } from '#formats/texts/request-texts.ts'
import type { JudgedContent } from '#moderation/judge/judge.ts'
import { normalise } from '#text/normalise.ts'
import { type Passage, textOf } from '#text/passage.ts'

/** The texts about which a judge is asked. */
export type SaidTexts = Pick<RequestTexts, 'text' | 'lastMessage'> & {
  /** What was said before the last message. */
  context: string
}

/** How many characters of the earlier messages are shown to a judge. */
const contextLength = 2000

/** No judge reads longer texts, and normalising them would hold up other calls. */
const normalisedMax = 600_000

function join(texts: readonly Passage[]): string {
  const all = texts.map(textOf).join('\n\n')
  return all.length > normalisedMax ? all : normalise(all).text
}

const tailOf = (texts: readonly Passage[]) =>
  normalise(
    texts
      .map(textOf)
      .join('\n\n')
      .slice(-2 * contextLength),
  ).text.slice(-contextLength)

/**
 * What a judge is asked about in a request. The last message is judged together with what was said before it. Everything else
 * that the caller sends is judged as well, because it may be new; verdicts on the rest are known from the turn before.
 */
export function contentsOfRequest(texts: SaidTexts): JudgedContent[] {
  const { text, lastMessage, context } = texts
  const last = new Set(lastMessage)
  const earlier = join(text.filter((each) => !last.has(each)))
  const contents = [
    { context: '', text: earlier },
    { context, text: join(lastMessage) },
  ]
  return contents
    .filter((each) => each.text !== '')
    .map((each) => ({ direction: 'request' as const, ...each }))
}

/** The context in which the last message of this request is judged. */
export const contextOfRequest = ({ history }: RequestTexts): string =>
  tailOf(history.flatMap(({ said }) => said))

/** The context in which answers to this request are judged. */
export const contextOfAnswer = ({ lastMessage }: RequestTexts): string => tailOf(lastMessage)

/** What a judge is asked about in earlier answers. */
export const contentOfHistory = (answers: readonly EarlierAnswer[]): JudgedContent => ({
  direction: 'response',
  context: '',
  text: join(answers.flatMap(({ said }) => said.filter(({ isRepeated }) => !isRepeated))),
})

/** A whole answer as one text. */
export const joinAnswer = (texts: readonly string[]): string => texts.join('\n\n')
