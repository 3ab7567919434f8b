import { getLlama, type Token } from 'node-llama-cpp'

import { splitAtStop } from './stop-sequences.ts'

/** Prompt and answer share the context of the model: a longer prompt loses its beginning. */
const contextTokens = 512
const promptMaxTokens = 384

export type GenerationOptions = {
  prompt: string
  maxTokens: number
  stops: readonly string[]
  sampling: { temperature: number; topP?: number; topK?: number; seed?: number }
}

export type Outcome = { finish: 'stop' | 'length'; promptTokens: number; completionTokens: number }

/** Loads the model. It generates one answer at a time, so callers must queue. */
export async function loadEngine(modelPath: string) {
  // One thread: with two, generation has been seen to hang on a busy machine with two cores.
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, progressLogs: false })
  const model = await llama.loadModel({ modelPath })
  const context = await model.createContext({ contextSize: contextTokens, threads: 1 })
  const sequence = context.getSequence()

  const tokenize = (text: string, { addSpecial = false, parseSpecial = true } = {}): Token[] => {
    const tokens = model.tokenize(text, parseSpecial)
    const { bos } = model.tokens
    return addSpecial && bos !== null ? [bos, ...tokens] : tokens
  }

  /** Removes words from the front until the rest leaves room for an answer. */
  const fit = (text: string): string => {
    let kept = text
    for (let excess = 1; excess > 0;) {
      excess = tokenize(kept, { addSpecial: true }).length - promptMaxTokens
      // A token has at least one character, so this drops too little rather than too much.
      if (excess > 0) kept = kept.slice(excess).replace(/^\S*\s+(?=\S)/, '')
    }
    return kept
  }

  /** Yields text as soon as it cannot be part of a stop sequence; ends at once when aborted. */
  async function* generate(
    options: GenerationOptions,
    signal: AbortSignal,
  ): AsyncGenerator<string, Outcome> {
    const prompt = tokenize(options.prompt, { addSpecial: true })
    const room = Math.min(options.maxTokens, contextTokens - prompt.length)
    const generated: Token[] = []
    let sent = 0
    const outcome = (finish: Outcome['finish']) => ({
      finish,
      promptTokens: prompt.length,
      completionTokens: generated.length,
    })
    await sequence.clearHistory()
    for await (const token of sequence.evaluate(prompt, options.sampling)) {
      if (signal.aborted) return outcome('stop')
      generated.push(token)
      const text = model.detokenize(generated, false, prompt)
      const isLast = generated.length >= room
      const { end, isStopped } = splitAtStop(text, options.stops, isLast)
      if (end > sent) yield text.slice(sent, end)
      sent = Math.max(sent, end)
      if (isStopped) return outcome('stop')
      if (isLast) return outcome('length')
    }
    const text = model.detokenize(generated, false, prompt)
    if (text.length > sent) yield text.slice(sent)
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
