// The request that every target gets: the same bytes except for the credential, and for the numbers of fresh texts.

export type Mode = 'plain' | 'stream'

export const modes = ['plain', 'stream'] as const satisfies readonly Mode[]
export const path = '/v1/chat/completions'

const frames = 30
const script = JSON.stringify({ tokens: frames })
const question = `What did you see this morning? Answer in a sentence or two.\n#script ${script}`

/** `wrk.lua` replaces it by another number in each request. */
const number = '@number@'
const words = Array.from({ length: frames - 1 }, (_, index) => `word${index}`)
const freshScript = JSON.stringify({ text: `${number} ${words.join(' ')}` })
const freshQuestion = `What is ${number}?\n#script ${freshScript}`

/** `isFresh`: neither the request nor its answer has a text that was sent before. */
export function bodyOf(mode: Mode, isFresh = false): string {
  return JSON.stringify({
    model: 'gpt-scripted',
    messages: [{ role: 'user', content: isFresh ? freshQuestion : question }],
    max_completion_tokens: 64,
    ...(mode === 'stream' && { stream: true, stream_options: { include_usage: true } }),
  })
}

type Answer = { text: string; pieces: number; outputTokens: number | undefined }

type Completion = {
  choices?: { message?: { content?: string }; delta?: { content?: string } }[]
  usage?: { completion_tokens?: number } | null
}

/** Describes what is wrong with an answer; undefined if it is correct. */
export function findDefect(mode: Mode, status: number, body: string): string | undefined {
  if (status !== 200) return `the status ${status} with ${body.slice(0, 200)}`
  const answer = mode === 'stream' ? readStream(body) : readPlain(body)
  const words = answer?.text.split(' ').length
  if (!answer || words !== frames) return `an answer of ${words} words: ${body.slice(0, 200)}`
  if (answer.outputTokens !== frames) return `an answer that counts ${answer.outputTokens} tokens`
  if (mode === 'stream' && answer.pieces !== frames) return `a stream of ${answer.pieces} pieces`
  return undefined
}

function readPlain(body: string): Answer {
  const { choices, usage } = JSON.parse(body) as Completion
  const text = choices?.[0]?.message?.content ?? ''
  return { text, pieces: 1, outputTokens: usage?.completion_tokens }
}

/** Undefined if the stream was cut off. */
function readStream(body: string): Answer | undefined {
  const lines = body.split('\n').filter((line) => line.startsWith('data: '))
  if (lines.pop() !== 'data: [DONE]') return undefined
  const answer: Answer = { text: '', pieces: 0, outputTokens: undefined }
  for (const line of lines) {
    const { choices, usage } = JSON.parse(line.slice(6)) as Completion
    const piece = choices?.[0]?.delta?.content
    if (piece) answer.pieces++
    answer.text += piece ?? ''
    answer.outputTokens = usage?.completion_tokens ?? answer.outputTokens
  }
  return answer
}
