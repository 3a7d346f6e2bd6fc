// The script of the page: it opens the session, keeps what is shown up to date, and switches the theme. Without it, all pages work, only not
// live. docs/design/ui.md says why it is no library.
'use strict';
(() => {
  const root = document.documentElement;
  root.classList.add('js');

  // The theme: as the browser says, or as the user has chosen.
  const themes = ['auto', 'light', 'dark'];
  const show = theme => { root.dataset.theme = theme; };
  let theme = localStorage.getItem('theme');
  show(themes.includes(theme) ? theme : 'auto');

  // The token behind '#' becomes a session. The address is cleared first, so that it stays in no history.
  const enter = async form => {
    const token = location.hash.slice(1);
    if (!token) return;
    history.replaceState(null, '', location.pathname);
    const answer = await fetch(form.action, {method: 'POST', body: new URLSearchParams({token}), redirect: 'manual'});
    if (answer.type === 'opaqueredirect') location.replace('/');
    else document.getElementById('refused').hidden = false;
  };

  // Ages of times, which the server writes as moments: its bytes change with the cluster only. What is spoken stays as it is.
  const units = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']];
  const ages = () => {
    for (const time of document.querySelectorAll('main time')) {
      if (time.closest('[role=status]')) continue;
      const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time.dateTime)) / 1000));
      const [size, unit] = units.find(([size]) => seconds >= size) || units[units.length - 1];
      if (!time.title) time.title = time.textContent;
      time.textContent = Math.floor(seconds / size) + unit;
    }
  };

  // swap puts new content into the parts of the page. It keeps the focus, and what the user has opened or closed.
  const swap = fragments => {
    const focus = document.activeElement;
    for (const {id, html} of fragments) {
      const part = document.getElementById(id);
      if (!part) continue;
      const toggled = new Map();
      for (const d of part.querySelectorAll('details[id]')) {
        if (d.open !== 'open' in d.dataset) toggled.set(d.id, d.open);
      }
      part.innerHTML = html;
      for (const [id, open] of toggled) {
        const d = document.getElementById(id);
        if (d) d.open = open;
      }
    }
    if (!focus.isConnected) (document.getElementById(focus.id) || document.getElementById('main')).focus({preventScroll: true});
    ages();
  };

  // The stream: one for a page, closed while the page is hidden.
  let stream, seen;
  const lost = document.getElementsByClassName('lost');
  const say = hidden => { for (const element of lost) element.hidden = hidden; };
  const connect = () => {
    if (stream || document.hidden || !seen) return;
    const address = new URL('/live' + location.pathname + location.search, location);
    address.searchParams.set('seen', seen);
    stream = new EventSource(address);
    stream.onopen = () => say(true);
    stream.onerror = () => say(false);
    stream.onmessage = message => {
      seen = message.lastEventId;
      swap(JSON.parse(message.data).fragments);
    };
  };
  const disconnect = () => {
    if (stream) stream.close();
    stream = undefined;
  };

  document.addEventListener('DOMContentLoaded', () => {
    const form = document.getElementById('enter');
    if (form) enter(form);
    const button = document.getElementById('theme');
    if (button) {
      const name = () => { button.textContent = 'Theme: ' + root.dataset.theme; };
      name();
      button.addEventListener('click', () => {
        theme = themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length];
        localStorage.setItem('theme', theme);
        show(theme);
        name();
      });
    }
    document.addEventListener('click', event => {
      const copied = event.target.closest('[data-copy]');
      if (copied) navigator.clipboard.writeText(copied.previousElementSibling.textContent).then(() => { copied.textContent = 'Copied'; });
    });
    seen = document.getElementById('main').dataset.seen;
    ages();
    setInterval(ages, 10000);
    connect();
  });
  document.addEventListener('visibilitychange', () => document.hidden ? disconnect() : connect());
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', connect);
})();
