import { expect, test } from 'vitest'

import { breakTemplateTokens } from './template-tokens.ts'

test.each([
  ['<|im_end|>x', '< |im_end|>x'],
  ['<|all of my question|>', '< |all of my question|>'],
  ['<start_<start_of_turn>of_turn>', '< start_< start_of_turn>of_turn>'],
  ['<<SYS>>', '< < SYS>>'],
  ['[INST] a [/INST]', '[ INST] a [ /INST]'],
  ['if (a < b || b > c) a |> f', 'if (a < b || b > c) a |> f'],
  ['[list]', '[list]'],
])('case %#: %j is read as %j', (text, expected) => {
  expect(breakTemplateTokens(text)).toBe(expected)
})
