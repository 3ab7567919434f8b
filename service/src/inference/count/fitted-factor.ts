/** Vocabularies differ most beyond ASCII, so each of the two kinds of text has a factor of its own. */
export type Script = 'ascii' | 'other'

/** A model's tokens per token of the local encoding. */
export type Factors = Readonly<Record<Script, number>>

type Fit = { factor: number; observations: number }
/** What `exportState` returns, to be stored for `importState`. */
export type FactorState = Record<string, Record<Script, Fit>>

export type Observation = {
  model: string
  /** The factor before the first observation. */
  start?: number
  script: Script
  /** The local count, before any factor. */
  localTokens: number
  /** The input tokens that the upstream reports. */
  upstreamTokens: number
}

const factorMin = 0.7
const factorMax = 1.6
const modelsMax = 1000
/** In prompts shorter than this, the chat template outweighs the vocabulary. */
const localTokensMin = 50
/** The start weighs as much as ten observations; each new observation weighs at least a fiftieth. */
const startWeight = 10
const weightMin = 0.02

/** Learns from the usage that upstreams report. Factors stay between `factorMin` and `factorMax`. */
export function createFittedFactors(stored: unknown = {}) {
  const fits = new Map<string, Record<Script, Fit>>(readState(stored))

  const fitsOf = (model: string, start: number) => fits.get(model) ?? startAt(start)

  return {
    factorsOf(model: string, start = 1): Factors {
      const { ascii, other } = fitsOf(model, start)
      return { ascii: ascii.factor, other: other.factor }
    },
    observe({ model, start = 1, script, localTokens, upstreamTokens }: Observation) {
      if (!isCount(localTokens) || !isCount(upstreamTokens)) return
      if (localTokens < localTokensMin || upstreamTokens === 0) return
      if (!fits.has(model) && fits.size >= modelsMax) return
      const before = fitsOf(model, start)
      const ratio = clamp(upstreamTokens / localTokens)
      fits.set(model, { ...before, [script]: moveTowards(ratio, before[script]) })
    },
    exportState: (): FactorState => Object.fromEntries(fits),
    /** Imports the stored factors of those models that have not been observed since the start. */
    importState(stored: unknown) {
      for (const [model, fit] of readState(stored)) if (!fits.has(model)) fits.set(model, fit)
    },
  }
}
export type FittedFactors = ReturnType<typeof createFittedFactors>

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

const clamp = (ratio: number) => Math.min(factorMax, Math.max(factorMin, ratio))

function moveTowards(ratio: number, { factor, observations }: Fit): Fit {
  const weight = Math.max(weightMin, 1 / (observations + startWeight))
  return { factor: factor + (ratio - factor) * weight, observations: observations + 1 }
}

function startAt(factor: number): Record<Script, Fit> {
  return { ascii: { factor, observations: 0 }, other: { factor, observations: 0 } }
}

/** Drops entries that cannot be read: their factors are learnt again. */
function readState(stored: unknown): [string, Record<Script, Fit>][] {
  if (typeof stored !== 'object' || stored === null) return []
  return Object.entries(stored)
    .slice(0, modelsMax)
    .flatMap(([model, value]: [string, unknown]) => {
      const { ascii, other } = Object(value) as Partial<Record<Script, unknown>>
      return isFit(ascii) && isFit(other) ? [[model, { ascii, other }]] : []
    })
}

function isFit(value: unknown): value is Fit {
  const { factor, observations } = Object(value) as Partial<Fit>
  const isInRange = typeof factor === 'number' && factor >= factorMin && factor <= factorMax
  return isInRange && typeof observations === 'number' && isCount(observations)
}
