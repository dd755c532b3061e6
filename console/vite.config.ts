/** Builds the console into `dist`, which the server serves at `/`. `npm run dev` here talks to a server on port 1853. */
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const SERVER = process.env.BARTLEBY_URL ?? 'http://127.0.0.1:1853'

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2023',
    // The policy of the server allows no script inside the page; browsers of today need no polyfill for preloading.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800,
    // What several screens use goes into one file: sixty small ones took longer to fetch than all of it takes to read.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 2 }] } },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/v1', '/kafka', '/channels', '/channel', '/health', '/openapi.json', '/docs'].map((path) => [
        path,
        { target: SERVER, changeOrigin: false },
      ]),
    ),
  },
})
