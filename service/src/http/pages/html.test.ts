import { expect, test } from 'vitest'

import { html } from './html.ts'

test('every value is escaped, in text and in attributes', () => {
  const evil = `"><script>alert('&')</script>`
  const { text } = html`<a title="${evil}">${evil}</a>`
  const escaped = '&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;'
  expect(text).toBe(`<a title="${escaped}">${escaped}</a>`)
})

test('HTML in HTML stays as it is, lists are joined, null is nothing', () => {
  const items = ['a', '<b>'].map((each) => html`<li>${each}</li>`)
  const { text } = html`<i>${items}${null}</i>${1}`
  expect(text).toBe('<i><li>a</li><li>&lt;b&gt;</li></i>1')
})
