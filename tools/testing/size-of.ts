type Sizes = {
  /** What `.ci/run` does. */
  usual: number
  /** What `./dev test --long` does. */
  long: number
  /** An environment variable that decides alone where it is set. */
  variable: string
}

/** How much a test does: inputs, rounds, seconds. */
export function sizeOf({ usual, long, variable }: Sizes): number {
  const set = process.env[variable]
  if (set === undefined) return process.env['LONG_TESTS'] === '1' ? long : usual
  const size = Number(set)
  // A size of NaN would let a test pass that has done nothing.
  if (!Number.isInteger(size) || size < 1) throw new Error(`${variable} takes a whole number.`)
  return size
}
