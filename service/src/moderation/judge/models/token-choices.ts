/** A token of a reply, and the likeliest tokens at its place, itself included. */
export type TokenChoice = {
  readonly token: string
  readonly alternatives: readonly { readonly token: string; readonly logprob: number }[]
}

/**
 * How likely `yes` was compared with `no` at the place of a token, 0 to 1. Undefined if the token is neither, because a
 * tokenizer may join it with its neighbours.
 */
export function likelihoodOf(
  choice: TokenChoice | undefined,
  { yes, no }: { yes: string; no: string },
): number | undefined {
  const word = choice && plain(choice.token)
  if (!choice || (word !== yes && word !== no)) return undefined
  const sum = (wanted: string) =>
    choice.alternatives
      .filter(({ token }) => plain(token) === wanted)
      .reduce((total, { logprob }) => total + Math.exp(Math.min(0, logprob)), 0)
  const [forYes, forNo] = [sum(yes), sum(no)]
  return forYes + forNo > 0 ? forYes / (forYes + forNo) : undefined
}

const plain = (token: string) => token.trim().toLowerCase()

/**
 * The token at an offset of the content. Undefined if the tokens do not make up the content, for example if a server also lists
 * those of its reasoning: the token at that offset would be another one.
 */
export function tokenAt(
  { content, tokens }: { content: string; tokens: readonly TokenChoice[] },
  offset: number,
): TokenChoice | undefined {
  const written = tokens.map(({ token }) => token).join('')
  if (!written.startsWith(content)) return undefined
  let end = 0
  for (const choice of tokens) {
    end += choice.token.length
    if (end > offset) return choice
  }
  return undefined
}
