/** Called by vitest once, before the tests of a ring that starts processes. */
export { useBuiltProgram as setup } from '../program.ts'
