import type { Turn, TurnMessage } from '#formats/turn.ts'
import type { Steps } from '#platform/steps/steps.ts'
import { decodePassage, joinMessages, joinParts, type Passage } from '#text/passage.ts'

import { callTexts, readOther, toolTexts, type Unread } from './part-texts.ts'
import { type Said, saidIn, toSaid } from './said.ts'

/** What the model said before, as the caller tells it: messages of the assistant in a row. */
export type EarlierAnswer = {
  readonly message: number
  /** Its text, its visible reasoning, and the arguments of its calls. */
  readonly said: readonly Passage[]
  /** What it answers: the message of the user before it. */
  readonly question: readonly Passage[]
}

/** The texts of a request, as rules see them. */
export type RequestTexts = {
  /**
   * Everything the caller sends that is not an earlier answer: instructions, what users and tools said, documents, tools, and
   * the beginning of the answer if the caller wrote one.
   */
  text: readonly Said[]
  /** What users and tools said. */
  userText: readonly Said[]
  /** What is said in the last message of the user, or in the last results of tools. */
  lastMessage: readonly Said[]
  system: readonly Said[]
  tools: readonly Said[]
  history: readonly EarlierAnswer[]
  /** The beginning of the answer, which the model goes on with. */
  prefill: string
  /** Of the last message that is not an instruction. Results of tools are messages of the user, as in a `Turn`. */
  role: Exclude<TurnMessage['role'], 'system'>
  /** The addresses of images; those that were sent along are `data:` addresses. */
  images: readonly string[]
  /** Whether there is content that neither rules nor scorers can read: a file, or binary data. */
  hasUnreadable: boolean
}

/** Reads what a request says. It may have tens of thousands of parts. */
export function* readRequestTexts(turn: Turn): Steps<RequestTexts> {
  const found: Found = { said: [], history: [], images: [], hasUnreadable: false }
  const system = saidIn('system', null, turn.system)
  let lastMessage: readonly Said[] = []
  let prefill = ''
  for (const run of runsOf(turn.messages)) {
    yield
    if (run.role === 'system') {
      yield* addSystemRun(found, run)
      continue
    }
    if (run.role === 'user') {
      lastMessage = yield* addUserRun(found, run)
      continue
    }
    const answer = yield* readAssistantRun(found, run)
    const { texts } = answer
    // The model goes on where the last message ends, so its caller puts those words into the answer.
    if (run.isLast) {
      const { first } = run
      addAll(
        found.said,
        texts.map((each) => ({ ...each, part: 'prefill' as const, message: first })),
      )
      prefill = answer.prefill
    } else {
      found.history.push({ message: run.first, said: texts, question: lastMessage })
    }
  }
  const tools = (yield* toolTexts(turn)).flatMap((text) => saidIn('tools', null, [text]))
  const others = turn.other.flatMap((text) => saidIn('user', null, [text]))
  return {
    text: [...system, ...found.said, ...tools, ...others],
    userText: found.said.filter(({ part }) => part !== 'prefill' && part !== 'system'),
    lastMessage,
    system: [...system, ...found.said.filter(({ part }) => part === 'system')],
    tools,
    history: found.history,
    prefill,
    role: lastRoleOf(turn),
    images: found.images,
    hasUnreadable: found.hasUnreadable,
  }
}

function lastRoleOf({ messages }: Turn): RequestTexts['role'] {
  const role = messages.findLast((message) => message.role !== 'system')?.role
  return role === 'assistant' ? role : 'user'
}

/** Decodes the escapes of all texts in steps, so that later readers find them decoded. */
export function* decodeRequestTexts({ text, lastMessage, history }: RequestTexts): Steps<void> {
  for (const passage of [...text, ...lastMessage]) yield* decodePassage(passage)
  for (const { said } of history) {
    for (const passage of said) yield* decodePassage(passage)
    yield
  }
}

type Found = Unread & { said: Said[]; history: EarlierAnswer[] }

/** Messages of one role in a row: their reader sees one text. */
type Run = {
  role: TurnMessage['role']
  messages: TurnMessage[]
  /** The place of its first message in the turn. */
  first: number
  isLast: boolean
}

/**
 * A message that says nothing ends no run: upstreams of other formats do not get it, and what stands around it is joined there.
 * So is one of the assistant that only has reasoning; that is judged apart.
 */
function runsOf(messages: readonly TurnMessage[]): Run[] {
  const runs: Run[] = []
  let last: Run | undefined
  for (const [first, message] of messages.entries()) {
    const { role } = message
    const isOwn = last?.role !== role
    if (!isOwn) last?.messages.push(message)
    else if (isSilent(message)) runs.push({ role, messages: [message], first, isLast: false })
    else {
      last = { role, messages: [message], first, isLast: false }
      runs.push(last)
    }
  }
  if (last) last.isLast = true
  return runs
}

const isSilent = ({ role, parts }: TurnMessage) =>
  parts.every(
    (part) =>
      (part.type === 'text' && part.text === '') ||
      (part.type === 'reasoning' && role === 'assistant'),
  )

/** Not as arguments: there may be more than a function takes. */
function addAll<Item>(list: Item[], added: readonly Item[]) {
  for (const item of added) list.push(item)
}

/** Adds instructions that stand between other messages. */
function* addSystemRun(found: Found, { messages, first }: Run): Steps<void> {
  const texts: string[][] = []
  for (const [number, { parts }] of messages.entries()) {
    texts.push(parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])))
    for (const part of parts) addAll(found.said, yield* readOther(found, part, first + number))
    yield
  }
  addAll(found.said, toSaid('system', first, joinMessages(texts)))
}

/** Adds what is said in messages of the user; returns what the last of them says. */
function* addUserRun(found: Found, { messages, first }: Run): Steps<readonly Said[]> {
  const texts: string[][] = []
  let [ownTexts, others]: [string[], Said[]] = [[], []]
  for (const [number, { parts }] of messages.entries()) {
    ownTexts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    others = []
    for (const part of parts) {
      if (part.type !== 'text') addAll(others, yield* readOther(found, part, first + number))
    }
    yield
    texts.push(ownTexts)
    addAll(found.said, others)
  }
  const together = toSaid('user', first, joinMessages(texts))
  addAll(found.said, together)
  // Equal texts are one object, so that what was computed for one is found for the other.
  const own =
    messages.length === 1 ? together : saidIn('user', first + messages.length - 1, ownTexts)
  return [...own, ...others]
}

/** The texts of an answer. `prefill` is what its reader sees of it as one text. */
type ReadAnswer = { texts: Passage[]; prefill: string }

function* readAssistantRun(found: Found, { messages, first }: Run): Steps<ReadAnswer> {
  const prose: string[][] = []
  const reasoning: string[] = []
  const others: Passage[] = []
  for (const [number, { parts }] of messages.entries()) {
    prose.push(parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])))
    for (const part of parts) {
      if (part.type === 'reasoning') reasoning.push(part.text)
      else if (part.type === 'refusal') others.push(joinParts([part.text]))
      else if (part.type === 'tool_call') addAll(others, yield* callTexts(part))
      // What tools and providers add is no answer of the model, also in a message of the assistant.
      else addAll(found.said, yield* readOther(found, part, first + number))
    }
    yield
  }
  const texts = [joinMessages(prose), joinParts(reasoning), ...others]
  return { texts: texts.filter(({ parts }) => parts.length > 0), prefill: prose.flat().join('') }
}
