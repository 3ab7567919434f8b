import { expect, test } from 'vitest'

import { AnswerTexts } from './answer-texts.ts'

const delta = (channel: string, text: string) => ({ channel, text, kind: 'delta' as const })
const frame = (...texts: ReturnType<typeof delta>[]) => ({ texts, ended: [], hasUnreadable: false })

test('a text that went on after another is one text again, without what was repeated', () => {
  const texts = new AnswerTexts()
  const start = 'x'.repeat(1500)
  texts.add(frame(delta('content', start), delta('reasoning', 'Hm')))
  texts.add(frame(delta('content~', `${start.slice(-1024)}sec`), delta('content~', 'ret')))
  texts.add(frame(delta('content~~', `${`${start}secret`.slice(-1024)} plan`)))
  expect(texts.all()).toEqual([`${start}secret plan`, 'Hm'])
})
