import { expect, test } from 'vitest'

import { valueForSchema } from './schema-value.ts'

test.each([
  [{ type: 'string', minLength: 6 }, 'textxx'],
  [{ type: 'string', maxLength: 2 }, 'te'],
  [{ type: 'string', format: 'date' }, '2026-01-02'],
  [{ type: 'integer', minimum: 7, maximum: 9 }, 7],
  [{ type: 'integer', maximum: -4 }, -4],
  [{ type: 'integer', exclusiveMinimum: 7 }, 8],
  [{ type: 'number', minimum: 5, multipleOf: 4 }, 8],
  [{ type: ['null', 'boolean'] }, true],
  [{ enum: ['b', 'c'] }, 'b'],
  [{ const: null }, null],
  [{ anyOf: [{ type: 'null' }, { type: 'string' }] }, 'text'],
  [{ type: 'array', items: { type: 'boolean' }, minItems: 2 }, [true, true]],
  [{ type: 'array', maxItems: 0 }, []],
  [{ prefixItems: [{ const: 1 }, { const: 2 }], items: false }, [1, 2]],
  [
    { allOf: [{ properties: { a: { const: 1 } } }, { properties: { b: { const: 2 } } }] },
    { a: 1, b: 2 },
  ],
  [{ $ref: '#/$defs/a~1b', $defs: { 'a/b': { const: 3 } } }, 3],
  [{}, {}],
])('the schema %j gets the value %j', (schema, value) => {
  expect(valueForSchema(schema)).toEqual(value)
})

test('a recursive schema gets a finite value', () => {
  const node = { type: 'object', properties: { next: { $ref: '#' }, name: { type: 'string' } } }
  expect(JSON.stringify(valueForSchema({ ...node, required: ['name'] }))).toContain('"name":"text"')
})
