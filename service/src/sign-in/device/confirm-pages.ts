import { confirmDevice } from '@gatehouse/contract/pages/pages'

import { html, type Html } from '#http/pages/html.ts'
import type { Principal } from '#http/principal.ts'
import { layout, warning } from '#sign-in/pages/layout.ts'

import type { DeviceRow } from './device-store.ts'

const csrfField = ({ session }: Principal): Html =>
  html`<input type="hidden" name="csrf" value="${session?.csrfToken ?? ''}" />`

/** Where the person types the code that the program shows; a link of the program may bring it along behind its `#`. */
export const codePage = (caller: Principal, problem?: string) =>
  layout({
    title: 'Sign in on a device',
    script: '/auth/address-form.js',
    body: html`${problem === undefined ? null : warning(problem)}
      <p>Type the code that the program shows, such as the command line on your computer.</p>
      <form method="post" action="${confirmDevice.path}">
        ${csrfField(caller)}
        <label for="user_code">Code</label>
        <input
          class="code"
          id="user_code"
          name="user_code"
          required
          maxlength="20"
          autocomplete="off"
          autocapitalize="characters"
          spellcheck="false"
          placeholder="BCDF-GHJK"
          data-from-address
        />
        <button>Go on</button>
      </form>`,
  })

type Question = {
  device: DeviceRow
  userCode: string
  organization: string
  hours: number
  now: Date
}

/** What is asked, by which program and from where. The person has to compare the code, which a stranger could have sent. */
export function questionPage(
  caller: Principal,
  { device, userCode, organization, hours, now }: Question,
) {
  const { client_id: client, device_name: name, address, created_at } = device
  const minutes = Math.floor((now.getTime() - created_at.getTime()) / 60_000)
  const asked = minutes < 1 ? 'less than a minute ago' : `${minutes} min ago`
  const { member, credentialId } = caller
  const you = member ? `${member.name} (${member.email}), ${member.role}` : `key ${credentialId}`
  const body = html`<p>
      A program wants to act as you for up to ${hours} hours, with all that you may do here.
    </p>
    <dl>
      <dt>Code, which the program must show too</dt>
      <dd class="code">${userCode}</dd>
      <dt>Program</dt>
      <dd>${client}${name === null ? null : html`, on a device that calls itself ${name}`}</dd>
      <dt>Asked from</dt>
      <dd>${address}, ${asked}</dd>
      <dt>You</dt>
      <dd>${you}</dd>
      <dt>Organization</dt>
      <dd>${organization}</dd>
    </dl>
    <p class="warning">
      Allow it only if you have started this sign-in yourself. If another person sent you the code
      or the link, refuse.
    </p>
    <form method="post" action="${confirmDevice.path}">
      ${csrfField(caller)}
      <input type="hidden" name="user_code" value="${userCode}" />
      <button name="decision" value="allow">Allow</button>
      <button class="second" name="decision" value="refuse">Refuse</button>
    </form>`
  return layout({ title: 'Allow this device?', body })
}

export const answeredPage = (isAllowed: boolean) =>
  isAllowed
    ? layout({
        title: 'The device is signed in',
        body: html`<p>Go back to the program; it goes on by itself. You can close this page.</p>`,
      })
    : layout({
        title: 'The device was refused',
        body: html`<p>The program gets nothing. You can close this page.</p>`,
      })
