/* Where a page can be besides a web server: on a disk, and on paper. */

/* Opened from disk it may not fetch its neighbours, so the search shows titles there without excerpts. */
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

/* Paper is white whatever the screen is. */
(() => {
  const root = document.documentElement.dataset;
  let worn;
  addEventListener("beforeprint", () => {
    worn = root.theme;
    root.theme = "light";
  });
  addEventListener("afterprint", () => {
    root.theme = worn;
  });
})();
