import type { ScoreMap } from './score.ts'
import { Text } from './text.ts'
import type { TextSegment, Vocabulary } from './vocabulary.ts'

/** What is known of a call besides the text that is judged. The texts are as they were sent. */
export type CallFacts = {
  direction: 'request' | 'response'
  model: string
  projectId: string
  endpoint: string
  /** Of the last message. */
  role: string
  isStreamed: boolean
  inputTokens: number
  /** Those asked for. */
  categories: readonly string[]
  /** What users and tools said. */
  userText: readonly TextSegment[]
  /** What users and tools said last. */
  lastMessage: readonly TextSegment[]
  /** The instructions. */
  system: readonly TextSegment[]
  /** The names, descriptions and schemas of tools. */
  tools: readonly TextSegment[]
  /** What the model said before, as the caller tells it. */
  history: readonly TextSegment[]
}

/** The variables of expressions, and their types. */
export const variables = {
  text: 'Text',
  user_text: 'Text',
  last_message: 'Text',
  system: 'Text',
  tools: 'Text',
  history: 'Text',
  direction: 'string',
  model: 'string',
  project_id: 'string',
  endpoint: 'string',
  role: 'string',
  stream: 'bool',
  input_tokens: 'int',
  categories: 'list<string>',
} as const

export type TextVariable = 'text' | 'user_text' | 'last_message' | 'system' | 'tools' | 'history'
/** No expression can write this name, so no variable of a loop hides what `score` reads. */
export const scoresName = 'score()'

export type ExpressionContext = Record<Exclude<keyof typeof variables, TextVariable>, unknown> &
  Record<TextVariable, Text> & { readonly [scoresName]?: ScoreMap }

/** Rules that were published before these variables existed may use their names in loops. */
export const isNewerName = (name: string): boolean =>
  name === 'user_text' || name === 'tools' || name === 'history'

export const isTextName = (name: string): name is TextVariable =>
  Object.hasOwn(variables, name) && variables[name as keyof typeof variables] === 'Text'

/** Texts by their segments: a list that several evaluations have in common is read once. */
export type KnownTexts = WeakMap<readonly TextSegment[], Text>

/** The values of the variables in one evaluation. */
export function contextOf(
  facts: CallFacts,
  texts: readonly TextSegment[],
  { vocabulary, known }: { vocabulary: Vocabulary; known: KnownTexts },
): ExpressionContext {
  const textOf = (segments: readonly TextSegment[]) => {
    const text = known.get(segments) ?? new Text(segments, vocabulary)
    known.set(segments, text)
    return text
  }
  return {
    text: new Text(texts, vocabulary),
    user_text: textOf(facts.userText),
    last_message: textOf(facts.lastMessage),
    system: textOf(facts.system),
    tools: textOf(facts.tools),
    history: textOf(facts.history),
    direction: facts.direction,
    model: facts.model,
    project_id: facts.projectId,
    endpoint: facts.endpoint,
    role: facts.role,
    stream: facts.isStreamed,
    input_tokens: BigInt(Math.trunc(facts.inputTokens)),
    categories: facts.categories,
  }
}
