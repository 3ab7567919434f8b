/** Surroundings of a command that needs nothing of them. */
export const bareMachine = {
  environment: {},
  readText: () => '',
  wait: () => Promise.resolve(),
  randomKey: () => '',
  width: 80,
  say: () => {},
}
