import { expect, test } from 'vitest'

import { baseUrlFrom, keyFrom, keyVariableFor } from './settings.ts'

test('the flag wins over the variable', () => {
  const environment = { GATEHOUSE_URL: 'https://a.example' }
  expect(baseUrlFrom(environment, undefined)).toBe('https://a.example')
  expect(baseUrlFrom(environment, 'http://b.example/base')).toBe('http://b.example/base')
})

test('a missing setting says which variable to set', () => {
  expect(() => baseUrlFrom({}, undefined)).toThrow(/^GATEHOUSE_URL is not set.*\n +export /)
  expect(() => baseUrlFrom({ GATEHOUSE_URL: '' }, undefined)).toThrow('GATEHOUSE_URL is not set')
  expect(() => keyFrom({}, 'GATEHOUSE_ADMIN_KEY', undefined)).toThrow(
    /^GATEHOUSE_ADMIN_KEY is not set.*\n +read -rs GATEHOUSE_ADMIN_KEY/,
  )
})

test.each([
  'gatehouse.example',
  'ftp://a',
  'https://u:p@a',
  'https://a?b',
  'https://a#b',
  'http://',
])('%s is not an address', (url) =>
  expect(() => baseUrlFrom({}, url)).toThrow('is not the http or https address'),
)

test('a key may end with a line break and never shows up in a complaint', () => {
  expect(keyFrom({}, 'KEY', 'gate_adm_1\n')).toBe('gate_adm_1')
  expect(keyFrom({ KEY: 'a' }, 'KEY', 'b')).toBe('b')
  expect(() => keyFrom({ KEY: 'a' }, 'KEY', ' ')).toThrow('--key-file is empty')
  expect(() => keyFrom({ KEY: 'sécret' }, 'KEY', undefined)).toThrow(/^(?!.*sécret)/)
})

test('only what administrators may call takes the administrator key', () => {
  expect(keyVariableFor(['project_key', 'admin_key'])).toBe('GATEHOUSE_ADMIN_KEY')
  expect(keyVariableFor(['project_key', 'jwt'])).toBe('GATEHOUSE_API_KEY')
})
