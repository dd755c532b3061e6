/**
 * The nonce that the server put into the page: only style tags that carry it are applied. What locks scrolling behind a dialog
 * (react-remove-scroll, by way of get-nonce) looks for it in a global variable that bundlers are known to set.
 */
export const styleNonce = document.querySelector('meta[name="style-nonce"]')?.getAttribute('content') ?? ''

Object.assign(globalThis, { __webpack_nonce__: styleNonce })
