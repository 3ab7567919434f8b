import { adminEndpoint } from '@gatehouse/contract/endpoint'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { readArguments } from './arguments.ts'
import { flagsOf } from './flags.ts'
import { inputFrom } from './input.ts'
import { UsageError } from './usage-error.ts'

const endpoint = adminEndpoint({
  id: 'editRule',
  summary: 'Edit a rule',
  method: 'PATCH',
  path: '/sets/:set_id/rules/:rule_id',
  permission: 'policies.write',
  params: z.object({ rule_id: z.string(), set_id: z.string() }),
  body: z.strictObject({
    name: z.string().nullish(),
    enabled: z.boolean().optional(),
    threshold: z.int().nullish(),
    tags: z.array(z.string()).optional(),
    config: z.looseObject({}).optional(),
  }),
  response: z.object({}),
  errors: [],
})

const files: Record<string, string> = { 'body.json': '{"name":"from file","extra":1}' }

function readText(path: string) {
  const text = files[path]
  if (text === undefined) throw new Error(`no file ${path}`)
  return text
}

function inputOf(...args: string[]) {
  const flags = flagsOf(endpoint)
  return inputFrom(endpoint, flags, readArguments(endpoint, flags, args), readText)
}

const bodyOf = (...args: string[]) => inputOf('s1', 'r1', ...args).body

test('path values stand in the order of the path, with or without their flags', () => {
  const params = { set_id: 's1', rule_id: 'r1' }
  expect(inputOf('s1', 'r1')).toEqual({ params, body: {} })
  expect(inputOf('--rule-id', 'r1', 's1').params).toEqual(params)
  expect(inputOf('r1', '--set-id=s1').params).toEqual(params)
})

test('without the whole path nothing is called', () => {
  expect(() => inputOf('s1')).toThrow('--rule-id is missing.')
  expect(() => inputOf('s1', '..')).toThrow("--rule-id takes an id, not '..'.")
  expect(() => inputOf('s1', '')).toThrow(UsageError)
  expect(() => inputOf('s1', 'r1', 'x')).toThrow("The argument 'x' is one too many.")
  expect(() => inputOf()).toThrow('--set-id and --rule-id are missing.')
})

test('texts become the types of the body', () => {
  expect(bodyOf('--name', '7', '--threshold', '7', '--enabled')).toEqual({
    name: '7',
    threshold: 7,
    enabled: true,
  })
  expect(bodyOf('--no-enabled', '--config', '{"a":[1]}')).toEqual({
    enabled: false,
    config: { a: [1] },
  })
})

test('null clears what is not a text; a text is never taken for null', () => {
  expect(bodyOf('--threshold', 'null', '--name', 'null')).toEqual({ threshold: null, name: 'null' })
})

test('a list is comma separated, repeated, JSON, or empty', () => {
  expect(bodyOf('--tags', 'a, b', '--tags', 'c')).toEqual({ tags: ['a', 'b', 'c'] })
  expect(bodyOf('--tags', '["a,b"]')).toEqual({ tags: ['a,b'] })
  expect(bodyOf('--tags', '')).toEqual({ tags: [] })
})

test('a whole body comes from text or file; single flags replace its members', () => {
  expect(bodyOf('--body', '@body.json', '--threshold', '3')).toEqual({
    name: 'from file',
    extra: 1,
    threshold: 3,
  })
  expect(() => bodyOf('--body', '@absent')).toThrow(
    '--body names a file that cannot be read: no file absent.',
  )
  expect(() => bodyOf('--body', '[]')).toThrow('--body takes a JSON object.')
})

test('a wrong flag is refused with its name', () => {
  expect(() => bodyOf('--colour', 'red')).toThrow("There is no flag '--colour'.")
  expect(() => bodyOf('--treshold', '1')).toThrow(
    "There is no flag '--treshold'. Did you mean '--threshold'?",
  )
  expect(() => bodyOf('--name')).toThrow('--name needs a value.')
  expect(() => bodyOf('--threshold', '-5')).toThrow(
    '--threshold needs a value. Write --threshold=-5 for one that starts with a dash.',
  )
  expect(() => bodyOf('--threshold', '1e3')).toThrow("--threshold takes a number, not '1e3'.")
  expect(() => bodyOf('--name', 'a', '--name', 'b')).toThrow('--name is given more than once.')
  expect(() => bodyOf('--config', '{')).toThrow('--config takes JSON')
  expect(() => bodyOf('--enabled=yes')).toThrow('--enabled takes no value.')
  expect(() => bodyOf('--help=yes')).toThrow('--help takes no value.')
  expect(() => bodyOf('--all')).toThrow("There is no flag '--all'.")
})

const publish = adminEndpoint({
  id: 'publishRule',
  summary: 'Publish a rule',
  method: 'POST',
  path: '/rules/:rule_id/publish',
  permission: 'policies.publish',
  params: z.object({ rule_id: z.string() }),
  body: z.strictObject({ revision: z.int(), is_final: z.boolean(), note: z.string().optional() }),
  response: z.object({}),
  errors: [],
})

function publishWith(...args: string[]) {
  const flags = flagsOf(publish)
  return inputFrom(publish, flags, readArguments(publish, flags, args), readText)
}

test('what the service requires is missed by the name of its flag', () => {
  expect(() => publishWith('r1', '--is-final')).toThrow('--revision is missing.')
  expect(() => publishWith('r1')).toThrow('--revision and --is-final are missing.')
  expect(() => publishWith()).toThrow('--rule-id, --revision, and --is-final are missing.')
  expect(publishWith('r1', '--revision', '0', '--no-is-final').body).toEqual({
    revision: 0,
    is_final: false,
  })
})

test('a member of --body needs no flag', () => {
  expect(publishWith('r1', '--body', '{"revision":3,"is_final":true}').body).toEqual({
    revision: 3,
    is_final: true,
  })
  expect(() => publishWith('r1', '--body', '{"revision":3}')).toThrow('--is-final is missing.')
})
