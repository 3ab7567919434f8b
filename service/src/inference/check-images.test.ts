import { describe, expect, test } from 'vitest'

import { callerFormats } from '#formats/formats.ts'
import { ApiError } from '#platform/api-error.ts'

import { refuseBrokenImages } from './check-images.ts'

const heads = {
  'image/jpeg': [0xff, 0xd8, 0xff, 0xe0],
  'image/png': [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
  'image/gif': [...Buffer.from('GIF89a')],
  'image/webp': [...Buffer.from('RIFF'), 0x0a, 0, 0, 0, ...Buffer.from('WEBPVP8 ')],
} as const
const types = Object.keys(heads) as (keyof typeof heads)[]
const base64 = (bytes: readonly number[]) => Buffer.from([...bytes, 0, 1, 2]).toString('base64')
const imageOf = (type: keyof typeof heads) => base64(heads[type])

const messageImage = (media_type: string, data: string) => ({
  type: 'image',
  source: { type: 'base64', media_type, data },
})
const bodies = {
  messages: (type: string, data: string) => ({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, messageImage(type, data)] }],
  }),
  chat_completions: (type: string, data: string) => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:${type};base64,${data}` } }],
      },
    ],
  }),
  responses: (type: string, data: string) => ({
    input: [
      {
        role: 'user',
        content: [{ type: 'input_image', image_url: `data:${type};base64,${data}` }],
      },
    ],
  }),
}
const params = {
  messages: 'body.messages[0].content[1].source.data',
  chat_completions: 'body.messages[0].content[0].image_url.url',
  responses: 'body.input[0].content[0].image_url',
}

type Name = keyof typeof bodies
function refusalOf(name: Name, body: Record<string, unknown>): ApiError | undefined {
  try {
    refuseBrokenImages(callerFormats[name].readTurn({ model: 'm', ...body }), body)
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

describe.each(Object.keys(bodies) as Name[])('in %s', (name) => {
  const check = (type: string, data: string) => refusalOf(name, bodies[name](type, data))

  test.each(types)('an image of type %s passes only under its own type', (type) => {
    for (const declared of types) {
      const refusal = check(declared, imageOf(type))
      if (declared === type) expect(refusal).toBeUndefined()
      else expect(refusal).toMatchObject({ code: 'invalid_image', param: params[name] })
    }
    expect(check(type.toUpperCase(), imageOf(type))).toBeUndefined()
  })

  test.each([
    ['image/png', ''],
    ['image/png', 'AAAA'],
    ['image/png', imageOf('image/png').slice(0, 4)],
    ['image/png', '%%%%'],
    ['image/webp', base64([...Buffer.from('RIFF....WAVE')])],
    ['image/svg+xml', base64([...Buffer.from('<svg>')])],
    ['image/bmp', base64([...Buffer.from('BM')])],
    ['text/plain', imageOf('image/png')],
  ])('%s with the data %j is refused, and the member is named', (type, data) => {
    expect(check(type, data)).toMatchObject({
      status: 400,
      code: 'invalid_image',
      type: 'media_error',
      param: params[name],
    })
  })

  test('a JPEG may be called image/jpg', () => {
    expect(check('image/jpg', imageOf('image/jpeg'))).toBeUndefined()
  })
})

test('images in the results of tools are checked too', () => {
  const result = (data: string) => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content: [messageImage('image/png', data)] },
        ],
      },
    ],
  })
  expect(refusalOf('messages', result(imageOf('image/png')))).toBeUndefined()
  expect(refusalOf('messages', result('AAAA'))?.param).toBe(
    'body.messages[0].content[0].content[0].source.data',
  )
})

test('an image by URL or by id is not looked at', () => {
  const body = {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'url', url: 'https://example.org/a.svg' } },
          { type: 'image', source: { type: 'file', file_id: 'file_1' } },
        ],
      },
    ],
  }
  expect(refusalOf('messages', body)).toBeUndefined()
})
