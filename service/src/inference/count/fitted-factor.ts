/** Vocabularies differ most beyond ASCII, so the two kinds of text are fitted apart. */
export type Script = 'ascii' | 'other'

/** How many tokens a model reads for each that we count. */
export type Factors = Readonly<Record<Script, number>>

type Fit = { factor: number; observations: number }
/** To be stored and given back as it is. */
export type FactorState = Record<string, Record<Script, Fit>>

export type Observation = {
  model: string
  /** Where its learning starts. */
  start?: number
  script: Script
  /** Our own count, before any factor. */
  localTokens: number
  /** What the upstream says that it has read. */
  upstreamTokens: number
}

const factorMin = 0.7
const factorMax = 1.6
const modelsMax = 1000
/** Short prompts tell more about the template around them than about the vocabulary. */
const localTokensMin = 50
/** The start weighs as much as so many observations; later each new one has at least a fiftieth. */
const startWeight = 10
const shareMin = 0.02

/** Learns from upstreams how their tokens compare to ours. What they say moves a factor only so far. */
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
    /** What was exported before. What has been learnt since then stays. */
    importState(stored: unknown) {
      for (const [model, fit] of readState(stored)) if (!fits.has(model)) fits.set(model, fit)
    },
  }
}
export type FittedFactors = ReturnType<typeof createFittedFactors>

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

const clamp = (ratio: number) => Math.min(factorMax, Math.max(factorMin, ratio))

function moveTowards(ratio: number, { factor, observations }: Fit): Fit {
  const share = Math.max(shareMin, 1 / (observations + startWeight))
  return { factor: factor + (ratio - factor) * share, observations: observations + 1 }
}

function startAt(factor: number): Record<Script, Fit> {
  return { ascii: { factor, observations: 0 }, other: { factor, observations: 0 } }
}

/** What cannot be understood is forgotten: it will be learnt again. */
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
