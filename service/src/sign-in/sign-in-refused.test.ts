import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { parseSignInFile } from './providers/sign-in-file.ts'
import { refusalReasons, SignInRefused } from './sign-in-refused.ts'

const page = readFileSync(new URL('../../../docs/sign-in.md', import.meta.url), 'utf8')

test('the page about sign-in has every refusal, with its words', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` +\| (\d{3}) +\| (.*?) *\|$/gm)]
  expect(rows.map(([, reason, status, message]) => ({ reason, status, message }))).toEqual(
    refusalReasons.map((reason) => {
      const { status, message } = new SignInRefused(reason)
      return { reason, status: String(status), message }
    }),
  )
})

test('the recipes of the page can be used', () => {
  const recipes = [...page.matchAll(/```json\n([^]*?)```/g)].map(([, text = '']) => text)
  const files = recipes.map((text) => parseSignInFile(text))
  expect(files.map(({ providers }) => providers[0]?.id)).toEqual([
    'entra',
    'okta',
    'google',
    'keycloak',
    'authentik',
  ])
})
