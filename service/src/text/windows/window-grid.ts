/**
 * How an answer that grows is cut for what scores it. A window ends at the first white space after `step` new characters, or
 * `extensionMost` later where there is none, and repeats the `overlap` characters before them. A scorer needs the overlap as
 * context; the step is how much text waits for a verdict, and how often the scorer is asked.
 */
export type WindowGrid = {
  /** The steps of the first windows; the last one is that of all further windows. */
  readonly steps: readonly number[]
  readonly overlap: number
}

export const extensionMost = 32

/** The longest window of a grid, without its overlap: so much of an answer can wait for it. */
export const heldMostBy = ({ steps }: WindowGrid): number => Math.max(...steps) + extensionMost

/** For the scripted scorer of tests, which needs no context: a mark in a window is a mark. */
export const fineGrid: WindowGrid = { steps: [24], overlap: 232 }

/**
 * For the scorer in this process. A short text says little to it: with smaller steps or less overlap it takes more harmless texts for
 * others (docs/decisions/0042-windows-by-scorer.md has the figures).
 */
export const localGrid: WindowGrid = { steps: [96, 64], overlap: 800 }

/** The steps that an operator may choose for a remote scorer. */
export const stepLeast = 24
export const stepMost = 256
const usualStep = 96

/** For scorers that are asked over the network: each window is a question. The first ones are short, so that an answer begins soon. */
export const remoteGrid = (step: number = usualStep): WindowGrid => ({
  steps: [...[48, 64].filter((first) => first < step), step],
  overlap: 160,
})

/** For the judge: a question to it takes a language model some hundred milliseconds. */
export const judgeGrid: WindowGrid = { steps: [96, 160, 256], overlap: 128 }

/** So much waits for a window at most, whatever an operator has chosen. */
export const heldMostByAny = stepMost + extensionMost
