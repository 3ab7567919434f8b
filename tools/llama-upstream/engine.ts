import { getLlama, type Token } from 'node-llama-cpp'

import { splitAtStop } from './stop-sequences.ts'

/** Prompt and answer share the context of the model: a longer prompt loses its beginning. */
const contextTokens = 512
const promptMaxTokens = 384

export type Wish = {
  prompt: string
  maxTokens: number
  stops: readonly string[]
  sampling: { temperature: number; topP?: number; topK?: number; seed?: number }
}

export type Outcome = { finish: 'stop' | 'length'; promptTokens: number; completionTokens: number }

/** Loads the model; it answers one wish at a time, so whoever asks has to queue. */
export async function loadEngine(modelPath: string) {
  // One thread: with two on a busy machine of two cores generation was seen to hang.
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, progressLogs: false })
  const model = await llama.loadModel({ modelPath })
  const context = await model.createContext({ contextSize: contextTokens, threads: 1 })
  const sequence = context.getSequence()

  const tokenize = (text: string, { addSpecial = false, parseSpecial = true } = {}): Token[] => {
    const tokens = model.tokenize(text, parseSpecial)
    const { bos } = model.tokens
    return addSpecial && bos !== null ? [bos, ...tokens] : tokens
  }

  /** Words go from the front until the rest leaves room for an answer. */
  const fit = (text: string): string => {
    let kept = text
    for (let excess = 1; excess > 0;) {
      excess = tokenize(kept, { addSpecial: true }).length - promptMaxTokens
      // A token has at least one character, so this drops too little rather than too much.
      if (excess > 0) kept = kept.slice(excess).replace(/^\S*\s+(?=\S)/, '')
    }
    return kept
  }

  /** Yields text as soon as no stop sequence can begin in it; ends at once when the signal says so. */
  async function* generate(wish: Wish, signal: AbortSignal): AsyncGenerator<string, Outcome> {
    const prompt = tokenize(wish.prompt, { addSpecial: true })
    const room = Math.min(wish.maxTokens, contextTokens - prompt.length)
    const made: Token[] = []
    let told = 0
    const outcome = (finish: Outcome['finish']) => ({
      ...{ finish, promptTokens: prompt.length, completionTokens: made.length },
    })
    await sequence.clearHistory()
    for await (const token of sequence.evaluate(prompt, wish.sampling)) {
      if (signal.aborted) return outcome('stop')
      made.push(token)
      const text = model.detokenize(made, false, prompt)
      const isLast = made.length >= room
      const { end, isStopped } = splitAtStop(text, wish.stops, isLast)
      if (end > told) yield text.slice(told, end)
      told = Math.max(told, end)
      if (isStopped) return outcome('stop')
      if (isLast) return outcome('length')
    }
    const text = model.detokenize(made, false, prompt)
    if (text.length > told) yield text.slice(told)
    return outcome('stop')
  }

  const describe = () => ({
    contextTokens,
    vocabulary: model.fileInfo.metadata.tokenizer.ggml.tokens.length,
  })
  const textOf = (token: Token) => model.detokenize([token], true)
  return { tokenize, textOf, fit, generate, describe }
}

export type Engine = Awaited<ReturnType<typeof loadEngine>>
