import { html } from '#http/pages/html.ts'

import { layout } from './layout.ts'

type Asked = {
  title: string
  /** Where the form goes. */
  action: string
  label: string
}

/**
 * A page that a link with a secret behind its `#` opens. Its script sends the secret on, which the browser has sent to no server so
 * far; without scripts the person pastes it.
 */
export const addressForm = ({ title, action, label }: Asked) =>
  layout({
    title,
    script: '/auth/address-form.js',
    body: html`<form method="post" action="${action}">
      <label for="token">${label}</label>
      <input
        id="token"
        name="token"
        required
        maxlength="200"
        autocomplete="off"
        spellcheck="false"
        data-from-address
      />
      <button>Go on</button>
    </form>`,
  })
