import { html } from '#http/pages/html.ts'

import { layout } from './layout.ts'

/**
 * A page that goes on by itself. Its address is ours or a provider's: a redirect would be refused after a form, and would still
 * count as the provider's after a sign-in.
 */
export const onwardPage = (title: string, address: string) =>
  layout({
    title,
    body: html`<p><a class="button" href="${address}">Go on</a></p>`,
    goesTo: address,
  })
