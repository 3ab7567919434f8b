// Puts what stands behind the # of the address into the form of this page, and sends it. The address is cleared at once, so that
// the secret stays neither in the history of the browser nor on the screen.
const field = document.querySelector('[data-from-address]')
const secret = location.hash.slice(1)
if (field && secret !== '') {
  history.replaceState(null, '', location.pathname)
  field.value = secret
  field.form.requestSubmit()
}
