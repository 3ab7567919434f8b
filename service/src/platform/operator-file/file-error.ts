const problemsMax = 20

/** All that is wrong with a file, one problem per line. */
export function fileError(problems: readonly string[]): Error {
  const lines = problems.slice(0, problemsMax)
  const others = problems.length - lines.length
  if (others > 0) lines.push(`and ${others} more`)
  return new Error(lines.map((line) => `  ${line}`).join('\n'))
}

/** `scorers[0].thresholds.hate` */
export function memberName(path: readonly PropertyKey[]): string {
  const steps = path.map((step) =>
    typeof step === 'number' ? `[${step}]` : `.${String(step).slice(0, 100)}`,
  )
  return steps.join('').slice(1) || 'the file'
}
