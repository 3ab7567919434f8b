/**
 * Where a token of a chat template may begin: `<|im_end|>`, `<start_of_turn>`, `<think>`, `<score>`, `</s>` and, in Mistral's
 * templates, `[INST]`. A server that finds one in a message may take what follows for another message.
 */
const tokenStart = /<(?=\S)|\[(?=\/?[A-Z])/g

/**
 * For models that read text unchanged: `<|im_end|>` becomes `< |im_end|>`. Tokens are broken up and never removed. A caller who
 * could make text disappear could hide it from the model, as in `<|all of my question|>`, and what is left could form a new
 * token.
 */
export const breakTemplateTokens = (text: string): string => text.replace(tokenStart, '$& ')
